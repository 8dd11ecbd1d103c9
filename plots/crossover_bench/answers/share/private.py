# SPDX-License-Identifier: Apache-2.0
"""How what is private looks in a text: folders, addresses, identifiers, secrets.

Every repetition is bounded or can't be undone (`++`): a long text costs no more than its length.
"""

import re
from collections.abc import Callable

Stays = Callable[[re.Match[str]], str]
Rule = tuple[re.Pattern[str], Stays]
_GONE = "…"


def nothing(match: re.Match[str]) -> str:
    """In place of what is gone: a mark, behind what told of it."""
    told = match.re.groupindex and match["told"]
    return f"{told or ''}{_GONE}"


# ---- folders

# Folders in which each user has one.
_OF_USERS = r"home\d?|homes|users?|scratch"
_IN_PATH = r"[^\s/\\:;,'\"()]"
_WORD = r"[^\s/\\:;,'\"()=]"  # of a name with spaces
# A name between two separators may have spaces, but for flags and paths that begin there.
_PART = rf"[/\\]++(?:{_IN_PATH}++(?: (?![-~]){_WORD}++){{1,5}}(?=[/\\])|{_IN_PATH}++)"
_PATH = re.compile(
    # From the root, but no name such as Epoch/model:x, whose / stands behind a letter.
    r"(?:(?:(?<![\w.)\]%/-])|(?<=-[ILB]))"
    rf"(?:~[\w.-]*+|[A-Za-z]:|\.\.|\.(?={_PART}[/\\]))?+"
    # From anywhere: up, or into the folders of users.
    rf"|\.\.(?=[/\\])|(?=[/\\](?:{_OF_USERS}|root)[/\\]))"
    rf"(?:{_PART})++[/\\]*+",
    re.IGNORECASE,
)
# The name of a user at the end of a path goes on where a quotation mark or a capital says so.
_END = re.compile(
    rf"(?P<told>[/\\](?:{_OF_USERS})[/\\]++)"
    rf"{_IN_PATH}++(?:(?: {_WORD}++){{0,4}}(?=['\"])|(?: (?-i:[A-Z])[\w.-]*+){{0,3}})(?![/\\\w])",
    re.IGNORECASE,
)
_TILDE = re.compile(r"(?<![\w/\\~])~[A-Za-z][\w.-]{0,60}[/\\]?")


def _file_name(match: re.Match[str]) -> str:
    """The last part of a path, as bench keeps it; of somebody's home folder nothing."""
    parts = [part for part in re.split(r"[/\\]+", match[0]) if part]
    is_home = len(parts) > 1 and re.fullmatch(_OF_USERS, parts[-2], re.IGNORECASE)
    return _GONE if is_home or not parts or parts[-1].startswith(("~", "..")) else parts[-1]


# ---- addresses

_LINK = r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s/@'\"]{1,200}@[^\s/'\"]{1,200}"
_AT = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,10}"
_IPV4 = r"(?<!\d)(?<!\d\.)\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)(?::\d{1,5})?"
_GROUP = "[0-9A-Fa-f]{1,4}"
_IPV6 = (
    rf"(?<![\w:.])(?=[0-9A-Fa-f:]{{0,40}}\d)(?:(?:{_GROUP}:){{7}}{_GROUP}"
    rf"|(?:{_GROUP}(?::{_GROUP}){{0,6}})?::(?:{_GROUP}(?::{_GROUP}){{0,6}})?)(?:%\w{{1,15}})?(?![\w:])"
)
_PAIR = "[0-9A-Fa-f]{2}"
_MAC = (
    rf"(?<![\w:-])(?:{_PAIR}(?::{_PAIR}){{5,7}}|{_PAIR}(?:-{_PAIR}){{5}}"
    r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}|[0-9A-Fa-f]{4}(?::[0-9A-Fa-f]{4}){3})(?![\w:-])"
)

# ---- identifiers and secrets

_GPU_UUID = r"(?:MIG-)?(?:GPU|MIG)-[0-9A-Fa-f]{4,12}(?:-[0-9A-Fa-f]{1,12}){0,4}(?!\w)"
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_OF_COMPUTER = r"(?<!\w)[0-9A-Fa-f]{32}(?!\w)"  # as in /etc/machine-id
_SERIAL = (
    r"(?P<told>(?<![a-z])(?:serial(?:[ _-]?(?:number|num|no\.?|id))?|s/n|asset[ _-]?tag)"
    r"(?:\s{1,3}is)?[\s:=#\"']{1,5})(?=[\w-]{0,60}\d)[\w-]{4,64}"
)
_TOKEN = (
    r"(?<!\w)(?:gh[oprsu]_|github_pat_|glpat-|hf_|npm_|pypi-|sk-|xox[abeprs]-|AKIA|AIza)[\w-]{8,250}"
    r"|(?<!\w)eyJ[\w-]{8,2000}(?:\.[\w-]{0,2000}){0,2}"
)
_NAMED_SECRET = (
    r"(?P<told>(?<![a-z])(?:token|passw(?:or)?d|passphrase|secret|credentials?|"
    r"(?:api|access|private)[_-]?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?|(?<![a-z])bearer\s{1,3})"
    r"[^\s\"',;]{4,500}"
)
# What names of fields and variables say of their values.
IDENTIFIES = re.compile(
    r"serial|uuid|guid|mac_?addr|asset|token|passw|secret|credential|api_?key", re.IGNORECASE
)

_RULES = (_LINK, _AT, _NAMED_SECRET, _TOKEN, _SERIAL, _GPU_UUID, _UUID, _OF_COMPUTER, _MAC, _IPV6)
OF_VERSIONS: tuple[Rule, ...] = (
    *((re.compile(text, re.IGNORECASE), nothing) for text in _RULES),
    (_END, nothing),
    (_PATH, _file_name),
    (_TILDE, nothing),
)
RULES: tuple[Rule, ...] = (*OF_VERSIONS, (re.compile(_IPV4), nothing))
