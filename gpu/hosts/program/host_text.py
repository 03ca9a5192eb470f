"""Rewriting of a program's text for the host compiler: kernels become functions that pack their arguments.

The input is preprocessed text, so macros are expanded and line markers give each line's origin.
`kernel<<<grid, block>>>(arguments)` becomes two calls, as in launches by kernels; bodies of device functions are
removed, and device variables register their names when the program starts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpu.files.source_lexer import blank_comments_and_literals, find_closing_brackets, find_launches
from gpu.simulator.frontend.clang.child_launches import CONFIGURE_FUNCTION

_MARKER = re.compile(rb'^# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)\n?', re.MULTILINE)
_OMITTED = re.compile(rb"^#@(\d+)\n", re.MULTILINE)
_SYSTEM_FLAG = b"3"
"""Flag of a line marker for system headers."""

_CUDA_KEYWORD = re.compile(
    rb"\b__(?:global|host|device|constant|shared|managed|forceinline|noinline|grid_constant|launch_bounds"
    rb"|cluster_dims|maxnreg|align|builtin_align|device_builtin|tile_static)__\b"
)
_REPLACEMENTS = {
    b"__forceinline__": b"inline",
    b"__noinline__": b"__attribute__((noinline))",
}
_KEYWORDS_WITH_ARGUMENTS = {b"__launch_bounds__", b"__cluster_dims__", b"__maxnreg__"}
_DECLARATION_STOP = re.compile(rb"[{};]|\b__(?:global|device|constant|managed)__\b")
_HEAD = re.compile(rb"[({[;=]|\boperator\b")
_NO_PARAMETERS = re.compile(
    rb"\b(?:__launch_bounds__|__cluster_dims__|__maxnreg__|__align__|__attribute__|alignas|decltype|noexcept|explicit"
    rb"|__declspec|typeof|__typeof__|sizeof)\s*$"
)
_DEVICE_VARIABLE = re.compile(rb"__(?:device|constant|managed)__")
_DEFINITION = b"/*lockstep defines %s*/"
"""Precedes a declaration in a rewritten text, for each device variable that it defines with external linkage."""
_DEFINITION_NAME = re.compile(rb"/\*lockstep defines (\w+)\*/")
_DEFINITIONS = re.compile(rb"(?:/\*lockstep defines \w+\*/)+")
_DEVICE_LAMBDA = re.compile(rb"\]\s*(?P<words>(?:__(?:host|device|forceinline|noinline)__\s*)+)")
_LAMBDA_BODY = re.compile(rb"[\w\s:<>,*&\-]*\{")
_FUNCTOR = re.compile(rb"\boperator\s*\(\s*\)\s*\(")
_TEMPLATE = re.compile(rb"\s*(?:(?:public|private|protected)\s*:\s*)?template\s*<")
_NAME = re.compile(rb"[A-Za-z_]\w*\Z")
_BUILT_IN = {
    *(b"void", b"bool", b"char", b"short", b"int", b"long", b"float", b"double", b"signed", b"unsigned", b"const"),
    *(b"volatile", b"auto", b"__restrict__", b"__restrict"),
}


@dataclass
class _Edits:
    """Replacements of parts of a text."""

    pieces: list[tuple[int, int, bytes]] = field(default_factory=list)

    def add(self, start: int, end: int, text: bytes) -> None:
        self.pieces.append((start, end, text))

    def apply(self, text: bytes) -> bytes:
        parts, done = [], 0
        for start, end, new in sorted(self.pieces):
            if start >= done:
                parts += [text[done:start], new]
                done = end
        return b"".join([*parts, text[done:]])


def rewrite_host_text(
    text: bytes, unit: int, own_headers: bytes, shared_headers: bytes = b"//", *, functors: bool = False
) -> bytes:
    """Rewrite a preprocessed text for the host compiler.

    Parameters
    ----------
    text : bytes
        Must contain the preprocessor's line markers.
    unit : int
        Number of the file, which identifies its kernels and variables in calls to the runtime.
    own_headers : bytes
        Folder of headers that are not rewritten; system headers are not either.
    shared_headers : bytes
        Folder of headers that are rewritten, although they are included like system headers.
    functors : bool
        Whether the host calls `operator()` of device functors too, as Thrust's C++ back end does.
    """
    user_text, omitted = _split_user_text(text, own_headers, shared_headers)
    return _OMITTED.sub(lambda match: omitted[int(match[1])], _Rewriter(user_text, unit, functors).rewrite())


def _split_user_text(text: bytes, own_headers: bytes, shared_headers: bytes) -> tuple[bytes, list[bytes]]:
    """Return the text with each part of system headers replaced by one line, and these parts."""
    user_text: list[bytes] = []
    omitted: list[bytes] = []
    start = 0
    is_own = True
    for marker in (*_MARKER.finditer(text), None):
        piece = text[start : marker.start() if marker is not None else len(text)]
        if is_own or not piece.strip():
            user_text.append(piece)
        else:
            user_text.append(b"#@%d\n" % len(omitted))
            omitted.append(piece)
        if marker is not None:
            is_own = marker[2].startswith(shared_headers) or (
                _SYSTEM_FLAG not in marker[3].split() and not marker[2].startswith((own_headers, b"<"))
            )
            user_text.append(marker[0])
            start = marker.end()
    return b"".join(user_text), omitted


class _Rewriter:
    def __init__(self, text: bytes, unit: int, functors: bool) -> None:
        self._text, self._unit, self._functors = text, unit, functors
        self._markers: list[tuple[int, int]] = []  # start and number of the line after each marker
        self._code = self._blank_literals()
        self._closings = find_closing_brackets(self._code)
        self._edits = _Edits()

    def rewrite(self) -> bytes:
        self._rewrite_declarations()
        code = bytearray(self._code)
        for start, end, _ in self._edits.pieces:
            code[start:end] = re.sub(rb"[^\n]", b" ", self._code[start:end])
        closings = find_closing_brackets(bytes(code))
        for match in _CUDA_KEYWORD.finditer(code):
            end = match.end()
            if match[0] in _KEYWORDS_WITH_ARGUMENTS:
                opening = code.find(b"(", end)
                end = closings.get(opening, opening) + 1
            elif match[0] in (b"__align__", b"__builtin_align__"):
                opening = code.find(b"(", end)
                self._edits.add(match.start(), opening, b"__attribute__((aligned")
                closing = closings.get(opening, opening)
                self._edits.add(closing, closing + 1, b")))")
                continue
            self._edits.add(match.start(), end, _REPLACEMENTS.get(match[0], b""))
        self._wrap_lambdas(bytes(code), closings)
        for launch in find_launches(bytes(code)):
            first, last = launch.configuration
            self._edits.add(launch.start, launch.end, b"")
            call = b", " + CONFIGURE_FUNCTION.encode() + b"(" + self._text[first:last] + b")"
            self._edits.add(launch.closing + 1, launch.closing + 1, call)
        return self._edits.apply(self._text)

    def _wrap_lambdas(self, code: bytes, closings: Mapping[int, int]) -> None:
        """Wrap each device lambda in a type with its line and its index on that line.

        A lambda that is for the host too is called there. The body of another one becomes a template that is never
        instantiated; it is needed only for its captures.
        """
        openings = {closing: opening for opening, closing in closings.items()}
        on_line: Counter[int] = Counter()
        for match in _DEVICE_LAMBDA.finditer(code):
            start = openings.get(match.start())
            if start is None or b"__device__" not in match["words"]:
                continue
            opening = closing = match.end()
            if code[opening : opening + 1] == b"(":
                closing = closings.get(opening, opening)
            body = _LAMBDA_BODY.match(code, closing + (closing > opening))
            end = closings.get(body.end() - 1) if body is not None else None
            if end is None:
                continue
            line = self._line_number(start)
            self._edits.add(start, start, b"::lockstep_host::closure<%d, %d>(" % (line, on_line[line]))
            self._edits.add(end + 1, end + 1, b")")
            on_line[line] += 1
            if b"__host__" not in match["words"]:
                self._edits.add(closing, closing, self._make_generic_parameter(opening, closing))

    def _make_generic_parameter(self, opening: int, closing: int) -> bytes:
        """Return a parameter that makes a lambda generic, for insertion before the closing bracket."""
        if opening == closing:
            return b"(auto...) "
        return b", auto..." if self._code[opening + 1 : closing].split() not in ([], [b"void"]) else b"auto..."

    def _blank_literals(self) -> bytes:
        """Return the text with literals and preprocessor lines blanked."""
        self._markers = [(marker.end(), int(marker[1])) for marker in _MARKER.finditer(self._text)]
        code = re.sub(rb"^#.*$", lambda match: b" " * len(match[0]), self._text, flags=re.MULTILINE)
        return blank_comments_and_literals(code)

    def _line_number(self, offset: int) -> int:
        """Return the line number of an offset in its original file."""
        at = bisect_right(self._markers, (offset, 1 << 62)) - 1
        if at < 0:
            return self._text.count(b"\n", 0, offset) + 1
        start, number = self._markers[at]
        return number + self._text.count(b"\n", start, offset)

    def _rewrite_declarations(self) -> None:
        """Process all declarations outside of functions."""
        code = self._code
        scopes: list[bool] = []  # for each open brace, whether it belongs to a namespace or a class
        classes: list[bool] = []
        start = end = 0
        while (match := _DECLARATION_STOP.search(code, end)) is not None:
            end = match.end()
            if match[0] == b"{":
                head = code[start : match.start()]
                is_class = re.search(rb"\b(?:class|struct|union|enum)\b[^()=]*$", _strip_templates(head)) is not None
                is_outer = re.search(rb"\bnamespace\b[^()=]*$|\bextern\s*$", head) is not None
                scopes.append(is_class or is_outer)
                classes.append(is_class)
                start = end
            elif match[0] == b"}":
                if scopes:
                    scopes.pop()
                    classes.pop()
                start = end
            elif match[0] == b";":
                start = end
            elif all(scopes):
                end = start = self._rewrite_declaration(start, any(classes))

    def _rewrite_declaration(self, start: int, in_class: bool) -> int:
        """Rewrite a declaration that contains a CUDA keyword; return the offset after it."""
        code = self._code
        head = _find_template_end(code, start)
        offset, parameters = head, None
        while (match := _HEAD.search(code, offset)) is not None:
            letter = match[0]
            if letter == b"operator":
                opening = code.find(b"(", match.end())
                if (
                    code[opening + 1 : opening + 20].lstrip().startswith(b")")
                    and code[match.end() : opening].strip() == b""
                ):
                    opening = code.find(b"(", code.find(b")", opening))
                if opening < 0:
                    return len(code)
                offset = opening
                continue
            if letter == b"[":  # an extent, which may have parentheses
                offset = self._closings.get(match.start(), match.start()) + 1
            elif letter == b"(":
                closing = self._closings.get(match.start())
                if closing is None:
                    return match.end()
                if parameters is None and not _NO_PARAMETERS.search(code[head : match.start()]):
                    parameters = (match.start(), closing)
                offset = closing + 1
            elif letter == b"=" and parameters is not None:
                end = code.find(b";", match.end())  # = default, = delete
                offset = end if end >= 0 else len(code)
            else:
                break
        else:
            return len(code)
        offset = match.start()
        words = code[start:offset]
        if match[0] == b"{" and parameters is not None:
            return self._rewrite_function(start, head, parameters, offset)
        if match[0] in (b"=", b"{") and parameters is None:
            if match[0] == b"{" and re.search(rb"\b(?:class|struct|union|enum|namespace)\b", words):
                return match.end() - 1
            end = self._find_variable_end(offset)
            words = self._remove_extern(head, words, start)
            self._register_variables(words[head - start :], code[head:end], end, in_class)
            return end + 1
        if match[0] == b";" and parameters is None:
            self._register_variables(words[head - start :], code[head:offset], offset, in_class)
        return offset + 1

    def _find_variable_end(self, offset: int) -> int:
        while offset < len(self._code):
            letter = self._code[offset : offset + 1]
            if letter == b";":
                return offset
            if letter in (b"(", b"{", b"["):
                offset = self._closings.get(offset, len(self._code))
            offset += 1
        return offset

    def _rewrite_function(self, start: int, head: int, parameters: tuple[int, int], opening: int) -> int:
        """Rewrite a function with a body; return the offset after it."""
        code = self._code
        closing = self._closings.get(opening)
        if closing is None:
            return len(code)
        words = code[start:opening]
        if b"__global__" in words:
            self._rewrite_kernel(start, head, parameters, opening, closing)
        elif self._functors and _FUNCTOR.search(words):
            return opening + 1
        elif b"__device__" in words and b"__host__" not in words and not re.search(rb"\bconstexpr\b", words):
            self._edits.add(
                opening, closing + 1, b"{ __builtin_trap(); " + self._line_structure(opening, closing) + b"}"
            )
        else:
            return opening + 1 if b"__host__" not in words else closing + 1
        return closing + 1

    def _rewrite_kernel(self, start: int, head: int, parameters: tuple[int, int], opening: int, closing: int) -> None:
        names: list[bytes] = []
        for first, last in self._split(parameters[0] + 1, parameters[1]):
            name, is_new = _parameter_name(self._code[first:last], len(names))
            if name is None:
                continue
            if is_new:
                at = first + len(self._code[first:last].split(b"=")[0].rstrip())
                self._edits.add(at, at, b" " + name)
            names.append(name)
        count = len(self._split(*_template_span(self._code, start))) if head > start else 0
        if re.match(rb"\s*template\s*<\s*>", self._code[start:head]):
            count = self._count_explicit_arguments(head, parameters[0])
        arguments = b"".join(b", " + name for name in names)
        call = b"::lockstep_host::pack(%d, %d, %d, __PRETTY_FUNCTION__%s); " % (
            self._unit,
            self._line_number(opening),
            count,
            arguments,
        )
        self._edits.add(opening, closing + 1, b"{ " + call + self._line_structure(opening, closing) + b"}")

    def _count_explicit_arguments(self, start: int, opening: int) -> int:
        """Return the number of explicit arguments of a specialization; -1 if they are deduced."""
        declared = self._code[start:opening].rstrip()
        first = declared.find(b"<")
        return len(self._split(start + first + 1, start + len(declared) - 1)) if declared.endswith(b">") else -1

    def _line_structure(self, start: int, end: int) -> bytes:
        """Return a part's newlines and line markers, so that later lines keep their numbers."""
        lines = self._text[start:end].split(b"\n")
        return b"\n".join(line if line.startswith(b"# ") else b"" for line in lines)

    def _split(self, start: int, end: int) -> list[tuple[int, int]]:
        """Split at commas that are not inside brackets."""
        pieces, depth, first = [], 0, start
        for index in range(start, end):
            letter = self._code[index : index + 1]
            if letter in (b"(", b"[", b"{", b"<"):
                depth += 1
            elif letter in (b")", b"]", b"}", b">"):
                depth -= 1
            elif letter == b"," and not depth:
                pieces.append((first, index))
                first = index + 1
        if self._code[first:end].strip():
            pieces.append((first, end))
        return pieces

    def _remove_extern(self, head: int, words: bytes, start: int) -> bytes:
        """Remove `extern` from a device variable with an initializer, which it defines; return the words without it."""
        match = re.search(rb"\bextern\b", words[head - start :])
        if match is None or not _DEVICE_VARIABLE.search(words):
            return words
        first, last = head + match.start(), head + match.end()
        if self._text[last : last + 8].lstrip().startswith(b'"'):
            return words
        self._edits.add(first, last, b"")
        return words[: first - start] + b" " * len(b"extern") + words[last - start :]

    def _register_variables(self, head: bytes, declaration: bytes, end: int, in_class: bool) -> None:
        """Register a declaration's device variables by name when the program starts."""
        if in_class or re.search(rb"\b(?:extern|typedef|using|friend)\b", head) or b"__shared__" in head:
            return
        if re.search(rb"\btemplate\b", head) or not _DEVICE_VARIABLE.search(head):
            return
        managed = b"true" if b"__managed__" in head else b"false"
        text = b""
        names: list[bytes] = []
        for first, last in self._split(end - len(declaration), end):
            name = _declared_name(self._code[first:last])
            if name is not None:
                names.append(name)
                text += b' static ::lockstep_host::Variable __lockstep_of_%s(%d, "%s", &reinterpret_cast<const volatile char&>(%s), sizeof(%s), %s);' % (  # noqa: E501
                    name, self._unit, name, name, name, managed,
                )  # fmt: skip
        self._edits.add(end + 1, end + 1, text)
        if not re.search(rb"\bstatic\b", head):
            start = end - len(declaration.lstrip())
            self._edits.add(start, start, b"".join(_DEFINITION % name for name in names))


def separate_variables(texts: Sequence[bytes]) -> list[bytes]:
    """Make device variables static that several rewritten texts of a program define.

    Without relocatable device code, each file has its own copy.
    """
    names = [set(_DEFINITION_NAME.findall(text)) for text in texts]
    counts = Counter(name for each in names for name in each)
    return [
        _DEFINITIONS.sub(
            lambda match: b"static " if any(counts[name] > 1 for name in _DEFINITION_NAME.findall(match[0])) else b"",
            text,
        )
        for text in texts
    ]


def _strip_templates(head: bytes) -> bytes:
    return head[_find_template_end(head, 0) :]


def _template_span(code: bytes, start: int) -> tuple[int, int]:
    """Return the range between the brackets of a template's parameters."""
    opening = code.index(b"<", start)
    depth = inside = 0
    for index in range(opening, len(code)):
        letter = code[index : index + 1]
        inside += (letter == b"(") - (letter == b")")
        if not inside:
            depth += (letter == b"<") - (letter == b">")
            if not depth:
                return opening + 1, index
    return opening + 1, opening + 1


def _find_template_end(code: bytes, start: int) -> int:
    """Return the start of a declaration after `template <...>` and access specifiers."""
    while _TEMPLATE.match(code, start) is not None:
        start = _template_span(code, start)[1] + 1
    return start


def _parameter_name(text: bytes, number: int) -> tuple[bytes | None, bool]:
    """Return a parameter's name, and whether it was generated for an unnamed one; None without a parameter."""
    declared = text.split(b"=")[0].strip()
    if declared in (b"", b"void"):
        return None, False
    declared = re.sub(rb"__attribute__\s*\(\(.*?\)\)", b"", declared)
    pointer = re.search(rb"\(\s*[*&]+\s*(\w+)\s*\)", declared)
    if pointer is not None:
        return pointer[1], False
    declared = re.sub(rb"(?:\[[^\]]*\]\s*)+$", b"", declared).rstrip()
    match = _NAME.search(declared)
    before = declared[: match.start()].rstrip() if match is not None else b""
    if match is None or not before or before.endswith(b"::") or match[0] in _BUILT_IN:
        return b"lockstep_parameter_%d" % number, True
    if before in (b"const", b"struct", b"enum", b"unsigned struct"):
        return b"lockstep_parameter_%d" % number, True
    return match[0] + (b"..." if before.endswith(b"...") else b""), False


def _declared_name(text: bytes) -> bytes | None:
    """Return the name in one declarator of a variable."""
    declared = re.split(rb"=|\{", text)[0]
    pointer = re.search(rb"\(\s*[*&]+\s*(\w+)\s*(?:\[[^\]]*\]\s*)*\)", declared)
    if pointer is not None:
        return pointer[1]
    declared = re.sub(rb"__\w+__\s*\([^)]*\)", b"", declared)
    declared = re.split(rb"\[", declared)[0].rstrip()
    match = _NAME.search(declared)
    return match[0] if match is not None and match[0] not in _BUILT_IN else None
