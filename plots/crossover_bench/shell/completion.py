# SPDX-License-Identifier: Apache-2.0
"""`crossover --print-completion`: what bash is told to complete commands, flags and choices."""

import argparse
from collections.abc import Iterator, Mapping

_SCRIPT = """\
# crossover --print-completion > ~/.local/share/bash-completion/completions/crossover
_crossover() {{
  local words
  COMPREPLY=()
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="run networks {commands} --help --version" ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="run networks {commands} --help --version"
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
# Where no word fits: names of files.
complete -o default -F _crossover crossover
"""


def bash(parsers: Mapping[str, argparse.ArgumentParser]) -> str:
    """For the parser of each command by its name."""
    cases = "\n".join(
        f'    {name}) words="{" ".join(_words(parser))}" ;;' for name, parser in parsers.items()
    )
    return _SCRIPT.format(cases=cases, commands=" ".join(parsers))


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Its long flags, and what there is to choose from."""
    for action in parser._actions:  # argparse tells them in no other way
        yield from (flag for flag in action.option_strings if flag.startswith("--"))
        yield from map(str, action.choices or ())
