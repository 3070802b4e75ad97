"""Print a script that completes commands, options, files and parameters in a shell."""

from __future__ import annotations

import argparse

USAGE = ("modgraph completion bash >> ~/.bashrc", "modgraph completion zsh > ~/.zfunc/_modgraph")
# each asks `modgraph completion --complete`, which prints a word a line, and after a tab what it means
SCRIPTS = {
    "bash": """\
_modgraph() {
    local IFS=$'\\n'
    COMPREPLY=($(modgraph completion --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1))
    [[ ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace
}
complete -F _modgraph modgraph""",
    "zsh": """\
#compdef modgraph
_modgraph() {
    local -a found
    found=(${(f)"$(modgraph completion --complete ${words[2,CURRENT]} 2>/dev/null)"})
    found=(${${found//:/\\\\:}/$'\\t'/:})
    _describe modgraph found
}
if [ "$funcstack[1]" = _modgraph ]; then _modgraph; else compdef _modgraph modgraph; fi""",
    "fish": """\
complete -c modgraph -f -a '(modgraph completion --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'""",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SCRIPTS, nargs="?", default="bash", help="the shell (bash)")
    parser.add_argument("--complete", nargs=argparse.REMAINDER, metavar="WORD", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    if options.complete is None:
        print(SCRIPTS[options.shell])
        return 0
    from modgraph.cli.complete import complete

    for word, meaning in complete(options.complete):
        print(f"{word}\t{meaning}".rstrip())
    return 0
