"""The OpenAPI document, and what is generated from it."""
