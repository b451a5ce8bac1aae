"""The report as one self-contained HTML page.

- `payload`: the report as compact JSON for the scripts of the page.
- `build`: puts template, styles, scripts and payload together, and writes the file.
- `assets/`: the template, styles and scripts.
"""
