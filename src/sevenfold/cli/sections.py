"""Every section of settings there is: the edge hands them in, so that nothing below has to know them all."""

from sevenfold.session.setting_sections import SETTINGS_SECTIONS

__all__ = ["SETTINGS_SECTIONS"]
