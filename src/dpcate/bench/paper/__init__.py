"""The paper's experiments, redrawn twice: with its printed calibration, which is not private, and with ours."""
