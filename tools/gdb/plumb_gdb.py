# SPDX-License-Identifier: Apache-2.0
"""What gdb knows of plumb: printers for its types, and `plumb tasks`, which lists the asynchronous stacks of a process or
of a core. Reads memory alone and calls nothing, so that a core is enough. See docs/debugging.md.

Load it by `source plumb_gdb.py`; an installed plumb that is shared has gdb load it.
"""

import ipaddress

import gdb
import gdb.printing

KIND_BITS = 7  # of a site: what is waited for; the rest is the address of a location
IN_SUSPENSION = 1  # of a link: it leads to a suspension, else to a frame
KINDS = ["unknown", "read", "write", "accept", "connect", "barrier", "time"]


def pointer(address, type_name):
    return gdb.Value(int(address)).cast(gdb.lookup_type(type_name).pointer())


def handle_address(coroutine):
    """The frame that a std::coroutine_handle names."""
    return int(coroutine["_M_fr_ptr"])


def text_at(address):
    return gdb.Value(int(address)).cast(gdb.lookup_type("char").pointer()).string() if address else ""


class Location:
    """A std::source_location, which is a pointer to two strings and two numbers of 32 bits."""

    def __init__(self, address):
        self.function, self.file, self.line = "(not started)", "", 0
        if address:
            word = gdb.lookup_type("unsigned long").pointer()
            strings = gdb.Value(int(address)).cast(word)
            numbers = gdb.Value(int(address) + 2 * word.sizeof).cast(
                gdb.lookup_type("unsigned int").pointer()
            )
            self.file = text_at(strings[0])
            self.function = as_written(text_at(strings[1]))
            self.line = int(numbers[0])

    def __str__(self):
        return f"{self.function} at {self.file}:{self.line}"


def as_written(function):
    """GCC names the function that it has made of a coroutine: void n::f(f(int)::_Z1fi.Frame*)."""
    end = function.rfind("::_Z")
    if end < 0 or ".Frame*)" not in function[end:]:
        return function
    closed = 0
    for i in range(end - 1, -1, -1):
        if function[i] == ")":
            closed += 1
        elif function[i] == "(":
            if closed == 0:
                return function[i + 1 : end]
            closed -= 1
    return function


class Frame:
    """A plumb::async_frame: what is known of a coroutine."""

    def __init__(self, value):
        self.value = value.cast(gdb.lookup_type("plumb::async_frame"))
        site = int(self.value["site_"])
        self.hidden = site == 0
        self.location = Location(site & ~KIND_BITS)
        self.kind = KINDS[site & KIND_BITS] if site & KIND_BITS < len(KINDS) else "unknown"

    def awaiter(self):
        above = self.value["awaiter_"]
        return Frame(above.dereference()) if int(above) else None

    def awaited(self):
        """The frames that it awaits, and what it waits for if there are none."""
        link = int(self.value["link_"])
        if not link:
            return [], "its start" if self.hidden else self.kind
        if not link & IN_SUSPENSION:
            return [Frame(pointer(link, "plumb::async_frame").dereference())], None
        return awaited_in(pointer(link & ~IN_SUSPENSION, "plumb::suspension").dereference())


def frame_of(coroutine_address):
    """Of a coroutine of plumb: its promise lies behind two pointers, and begins with its frame."""
    promise = coroutine_address + 2 * gdb.lookup_type("void").pointer().sizeof
    base = pointer(promise, "plumb::promise_base").dereference()
    return Frame(base), base


def has_ended(coroutine_address):
    """A coroutine at its end has nothing to be resumed by."""
    return int(pointer(coroutine_address, "unsigned long").dereference()) == 0


def awaited_in(suspension):
    form = str(suspension["form_"]).rsplit("::", 1)[-1]
    if form == "primitive":
        waiter = suspension.cast(gdb.lookup_type("plumb::waiter"))
        if int(waiter["next_case_"]):
            return [], "select"
        waits_in = waiter["list_"].dereference()
        text = f"{waits_in['what_'].string()} {hex(int(waits_in['lock_'].address))}"
        held = int(waits_in["held_since_"]["_M_b"]["_M_p"])
        return [], text + (f", held since {Location(held)}" if held else "")
    if form == "tasks":
        children = suspension.cast(gdb.lookup_type("plumb::children"))
        frames = []
        for i in range(int(children["count_"])):
            place = int(children["in_"]) + i * int(children["stride_"])
            coroutine = int(pointer(place, "unsigned long").dereference())
            if coroutine and not has_ended(coroutine):
                frame, base = frame_of(coroutine)
                if int(base["env_"]):
                    frames.append(frame)
        return frames, "the start of tasks"
    if form == "scope":
        scope = suspension.cast(gdb.lookup_type("plumb::task_scope"))
        frames = [Frame(scope["body_"].dereference())] if int(scope["body_"]) else []
        return frames + roots_of(scope["spawned_"]), "the start of tasks"
    away = suspension.cast(gdb.lookup_type("plumb::round_trip"))["away_"]
    return ([Frame(away.dereference())] if int(away) else []), "a task on another executor"


def roots_of(root_list):
    frames = []
    node = root_list["first_"]
    while int(node):
        if int(node["frame_"]):
            frames.append(Frame(node["frame_"].dereference()))
        node = node["next_"]
    return frames


def contexts():
    """The lists of roots of all contexts, the newest first."""
    # By its symbol, which is there without the debug information of the library too.
    first = gdb.parse_and_eval("&_ZN5plumb13context_roots12first_of_allE")
    context = pointer(first, "plumb::context_roots").cast(
        gdb.lookup_type("plumb::context_roots").pointer().pointer()
    ).dereference()
    while int(context):
        yield context.dereference()
        context = context["next_"]


def innermost_below(frame):
    """Yields (frame, what it waits for) for each coroutine that this one has come to in the end."""
    todo = [frame]
    while todo:
        frame = todo.pop()
        below, wait = frame.awaited()
        if below:
            todo.extend(reversed(below))
        else:
            yield frame, wait


class PlumbCommand(gdb.Command):
    """Commands for programs that use plumb."""

    def __init__(self):
        super().__init__("plumb", gdb.COMMAND_STACK, gdb.COMPLETE_COMMAND, True)


class TasksCommand(gdb.Command):
    """Prints the asynchronous stacks of all contexts: what each root has come to, and what it waits for there."""

    def __init__(self):
        super().__init__("plumb tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for context in contexts():
            roots = roots_of(context)
            print(f"{context['context_'].string()}: {len(roots)} roots")
            for root in roots:
                for innermost, wait in innermost_below(root):
                    print(f"waits for {wait}")
                    frame, depth = innermost, 0
                    while frame is not None:
                        if not frame.hidden:
                            print(f"[{depth}] {frame.location}")
                            depth += 1
                        frame = frame.awaiter()


class AsString:
    def __init__(self, value):
        self.value = value


class ResultPrinter(AsString):
    def to_string(self):
        expected = self.value["content_"]
        if not expected["_M_has_value"]:
            error = expected["_M_unex"]
            return f"error {int(error['_M_value'])}"
        names = [f.name for f in expected.type.strip_typedefs().fields()] + [
            f.name
            for parent in expected.type.strip_typedefs().fields()
            if parent.name is None
            for f in parent.type.fields()
        ]
        return str(expected["_M_val"]) if "_M_val" in names else "success"


class DeadlinePrinter(AsString):
    def to_string(self):
        kind = str(self.value["kind_"]).rsplit("::", 1)[-1]
        return "infinite" if kind == "infinite" else f"{kind} {int(self.value['ns_'])} ns"


class BufferPrinter(AsString):
    def to_string(self):
        return f"{int(self.value['size_'])} bytes at {hex(int(self.value['data_']))}"


class BuffersPrinter(AsString):
    def to_string(self):
        one = self.value["one_"]
        count = int(self.value["count_"])
        if count == 0:
            return BufferPrinter(one).to_string()
        return f"{int(one['size_'])} bytes in {count} buffers"


class EndpointPrinter(AsString):
    def to_string(self):
        raw = self.value["bytes_"]["_M_elems"]
        family = str(self.value["family_"]).rsplit("::", 1)[-1]
        if family == "unix_domain":
            name = bytes(int(raw[i]) for i in range(int(self.value["unix_size_"])))
            shown = b"@" + name[1:] if name[:1] == b"\0" else name
            return "unix:" + shown.decode(errors="backslashreplace")
        port = int(self.value["port_"])
        if family == "ipv4":
            return f"{ipaddress.IPv4Address(bytes(int(raw[i]) for i in range(4)))}:{port}"
        scope = int(self.value["scope_"])
        address = ipaddress.IPv6Address(bytes(int(raw[i]) for i in range(16)))
        return f"[{address}{f'%{scope}' if scope else ''}]:{port}"


class HandlePrinter(AsString):
    def to_string(self):
        handle = self.value.cast(gdb.lookup_type("plumb::handle"))
        native = int(handle["native_"])
        kind = str(handle["kind_"]).rsplit("::", 1)[-1]
        return f"closed {kind}" if native < 0 else f"{kind} {native}"


class TaskPrinter(AsString):
    def to_string(self):
        coroutine = handle_address(self.value["coroutine_"])
        if not coroutine:
            return "no task"
        frame, base = frame_of(coroutine)
        state = "ended" if has_ended(coroutine) else "running" if int(base["env_"]) else "not started"
        return f"task {state}: {frame.location}"


def printers():
    all_ = gdb.printing.RegexpCollectionPrettyPrinter("plumb")
    for name, pattern, printer in [
        ("result", r"^plumb::(io_)?result<.*>$", ResultPrinter),
        ("deadline", r"^plumb::deadline$", DeadlinePrinter),
        ("buffer", r"^plumb::(const_)?buffer$", BufferPrinter),
        ("buffers", r"^plumb::basic_buffers<.*>$", BuffersPrinter),
        ("endpoint", r"^plumb::endpoint$", EndpointPrinter),
        ("handle", r"^plumb::(\w+_)?handle$", HandlePrinter),
        ("task", r"^plumb::task<.*>$", TaskPrinter),
    ]:
        all_.add_printer(name, pattern, printer)
    return all_


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
PlumbCommand()
TasksCommand()
