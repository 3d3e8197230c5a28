"""The configuration files, in Artemis' own formats: read, checked and reported as a whole."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.config.broker_xml import read_broker_xml
    from atalanta.config.configuration import Configuration
    from atalanta.config.problems import ConfigError, Report, nearest
else:
    __getattr__ = face(__name__)

__all__ = ["ConfigError", "Configuration", "Report", "nearest", "read_broker_xml"]
