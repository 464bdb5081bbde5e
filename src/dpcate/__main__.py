from dpcate.cli import main

main()
