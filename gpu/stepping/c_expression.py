"""C expressions as they stand in a source text: read far enough to say what each part was worth.

The simulator runs what clang made of the text; this is only for showing it. What cannot be read is shown as it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


class UnreadableError(Exception):
    """An expression that this reader does not know."""


@dataclass(frozen=True)
class Number:
    """A literal: a number, a character or a string."""

    text: str


@dataclass(frozen=True)
class Name:
    """A variable, or a member of threadIdx and its like, such as "threadIdx.x"."""

    text: str


@dataclass(frozen=True)
class Unary:
    """`-x`, `!x`, `~x`, `+x`, `&x`."""

    op: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    """Any operator between two values, `&&`, `||` and the comma among them."""

    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Choice:
    """`condition ? chosen : other`."""

    condition: Node
    chosen: Node
    other: Node


@dataclass(frozen=True)
class Assign:
    """`place op value`; `op` is "=", "+=" and so on. `++` and `--` add and subtract 1; `after` is `x++`."""

    op: str
    place: Node
    value: Node
    after: bool = False


@dataclass(frozen=True)
class Call:
    """`name(arguments)`."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Place:
    """Something in memory: `base[index]`, `*base`, `base.member` or `base->member`."""

    base: Node
    index: Node | None = None
    member: str = ""


@dataclass(frozen=True)
class Cast:
    """`(type)operand`."""

    type: str
    operand: Node


@dataclass(frozen=True)
class Group:
    """`(inner)`."""

    inner: Node


Node = Number | Name | Unary | Binary | Choice | Assign | Call | Place | Cast | Group

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:0[xXbB][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[uUlLfF]*|'(?:\\.|[^'])+'"
    r'|"(?:\\.|[^"])*")|(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)'
    r"|(?P<op><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^~!<>=?:,.()\[\]{}]))"
)

_LEVELS = {op: level for level, ops in enumerate(
    ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %"), 1
) for op in ops.split()}  # fmt: skip
_ASSIGNMENTS = frozenset(["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_TYPES = frozenset(
    (
        *("void", "bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "half", "size_t"),
        *("const", "volatile", "auto", "uint", "int8_t", "int16_t", "int32_t", "int64_t"),
        *("uint8_t", "uint16_t", "uint32_t", "uint64_t", "float2", "float4", "int2", "int4", "uint4"),
    )
)
_SPECIAL = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim"))


def level_of(node: Node) -> int:
    """Return how tightly a node binds: a larger number needs no parentheses beside a smaller one."""
    match node:
        case Binary(op):
            return _LEVELS.get(op, 0)
        case Choice() | Assign():
            return 0
        case _:
            return 20


def parse(text: str) -> Node:
    """Read an expression.

    Raises
    ------
    UnreadableError
        It is none that is known here.
    """
    reader = _Reader(text)
    node = reader.comma()
    if reader.peek():
        raise UnreadableError(text)
    return node


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place, text = 0, text.rstrip()
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise UnreadableError(text)
            self._tokens.append((found.lastgroup or "", found.group(found.lastgroup or 0)))
            place = found.end()
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else ""

    def _kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise UnreadableError(token)
        self._at += 1
        return token

    def comma(self) -> Node:
        node = self.assignment()
        while self.peek() == ",":
            self._take()
            node = Binary(",", node, self.assignment())
        return node

    def assignment(self) -> Node:
        node = self._binary(1)
        if self.peek() == "?":
            self._take()
            chosen = self.comma()
            self._take(":")
            return Choice(node, chosen, self.assignment())
        if self.peek() in _ASSIGNMENTS and self._kind() == "op":
            return Assign(self._take(), node, self.assignment())
        return node

    def _binary(self, level: int) -> Node:
        node = self._unary()
        while self._kind() == "op" and _LEVELS.get(self.peek(), 0) >= level:
            op = self._take()
            node = Binary(op, node, self._binary(_LEVELS[op] + 1))
        return node

    def _unary(self) -> Node:
        token = self.peek()
        if self._kind() == "op":
            if token in ("-", "!", "~", "+", "&"):
                return Unary(self._take(), self._unary())
            if token == "*":
                self._take()
                return Place(self._unary())
            if token in ("++", "--"):
                op = self._take()
                return Assign(f"{op[0]}=", self._unary(), Number("1"))
            if token == "(" and (cast := self._cast()):
                return Cast(cast, self._unary())
        return self._postfix(self._primary())

    def _cast(self) -> str:
        """Take `(type)` where it is one and something to convert follows; else nothing."""
        ahead, words = 1, []
        while self._kind(ahead) == "name" or self.peek(ahead) == "*":
            words.append(self.peek(ahead))
            ahead += 1
        if not words or self.peek(ahead) != ")":
            return ""
        known = all(word in _TYPES or word == "*" for word in words) or words[-1] == "*"
        if not known and not (len(words) == 1 and self._kind(ahead + 1) in ("name", "number")):
            return ""
        self._at += ahead + 1
        return " ".join(words)

    def _primary(self) -> Node:
        kind, token = self._kind(), self._take()
        if kind == "number":
            return Number(token)
        if token == "(":
            inner = self.comma()
            self._take(")")
            return Group(inner)
        if kind != "name":
            raise UnreadableError(token)
        if token in _SPECIAL and self.peek() == ".":
            self._take()
            return Name(f"{token}.{self._take()}")
        arguments = self._template()
        if self.peek() == "(":
            return Call(token + arguments, self._arguments())
        return Name(token)

    def _template(self) -> str:
        """Take `<arguments>` where a call follows."""
        if self.peek() != "<":
            return ""
        ahead = 1
        while self._kind(ahead) in ("name", "number") or self.peek(ahead) in (",", "*"):
            ahead += 1
        if self.peek(ahead) != ">" or self.peek(ahead + 1) != "(":
            return ""
        return "".join(self._take() for _ in range(ahead + 1))

    def _arguments(self) -> tuple[Node, ...]:
        self._take("(")
        found: list[Node] = []
        while self.peek() != ")":
            found.append(self.assignment())
            if self.peek() != ")":
                self._take(",")
        self._take(")")
        return tuple(found)

    def _postfix(self, node: Node) -> Node:
        while True:
            match self.peek():
                case "[":
                    self._take()
                    node = Place(node, self.comma())
                    self._take("]")
                case "." | "->" as op:
                    self._take()
                    name = self._take()
                    if self.peek() == "(":
                        node = Call(f"{_plain(node)}{op}{name}", self._arguments())
                    else:
                        node = Place(node, None, op + name)
                case "++" | "--" as op:
                    self._take()
                    node = Assign(f"{op[0]}=", node, Number("1"), after=True)
                case _:
                    return node


def _plain(node: Node) -> str:
    if isinstance(node, Name):
        return node.text
    raise UnreadableError("a method of a value")


def base_of(node: Node) -> str:
    """Return the variable that a place is reached from; "" where that is more than a name."""
    match node:
        case Name(text):
            return text
        case Place(base) | Group(base) | Cast(_, base) | Binary(_, base, _) | Unary("&", base):
            return base_of(base)
    return ""


def calls_in(node: object) -> list[str]:
    """Return the names of the functions that an expression calls."""
    found = [node.name] if isinstance(node, Call) else []
    for each in node if isinstance(node, tuple) else getattr(node, "__dict__", {}).values():
        if isinstance(each, tuple) or hasattr(each, "__dataclass_fields__"):
            found += calls_in(each)
    return found
