"""Pages about a release for people who did not make it: a report to read, a certificate to sign."""

from dpcate.report.certificate import certificate_html
from dpcate.report.page import report_html
from dpcate.report.profiles import Profiles, read_profiles

__all__ = ["Profiles", "certificate_html", "read_profiles", "report_html"]
