"""The resource provider: ARM over HTTP. It checks shapes and speaks; it decides nothing."""
