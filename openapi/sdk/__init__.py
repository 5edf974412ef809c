"""SDKs for Python and TypeScript, generated from the OpenAPI document: `python -m openapi.sdk FOLDER`."""
