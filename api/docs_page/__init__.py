"""The page at /docs: HTML, style sheet, script."""
