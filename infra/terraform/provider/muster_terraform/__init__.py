"""The Terraform provider of Muster."""

VERSION = "0.1.0"
