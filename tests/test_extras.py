import pytest

from dpcate.errors import InputError
from dpcate.extras import require


def test_a_missing_library_names_its_extra_in_one_line():
    with pytest.raises(InputError, match=r"^this needs nowhere: pip install 'dpcate\[peers\]'$") as caught:
        require("nowhere.at_all", "peers")
    assert caught.value.__context__ is None


def test_a_present_library_is_returned():
    assert require("math", "peers").pi > 3
