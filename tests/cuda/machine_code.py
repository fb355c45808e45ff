"""From PTX to the machine code of a GPU, without one, as `numba.cuda` does before a launch."""

import re

from cuda.bindings import nvjitlink
from numba.cuda.cudadrv.libs import get_cudalib


ELF = b"\x7fELF"
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")


def linked(ptx, capability, most_registers=None):
    """Link PTX with the device runtime, which has the grid-wide barrier; return what it takes.

    With `most_registers` no thread has more; those that had no room are on its stack.

    That is registers per thread, and bytes on the stack of a thread and of these, of registers
    that had no room: the most of any function. The linker refuses what no GPU of this compute
    capability could load.
    """
    options = [f"-arch=sm_{capability}", "-verbose"]
    options += [f"-maxrregcount={most_registers}"] if most_registers else []
    handle = nvjitlink.create(len(options), options)
    try:
        text = ptx.rstrip(b"\0")
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, text, len(text), "kernel")
        runtime = get_cudalib("cudadevrt", static=True)
        nvjitlink.add_file(handle, nvjitlink.InputType.LIBRARY, runtime)
        nvjitlink.complete(handle)
        code = filled(handle, nvjitlink.get_linked_cubin_size, nvjitlink.get_linked_cubin)
        log = filled(handle, nvjitlink.get_info_log_size, nvjitlink.get_info_log).decode()
    finally:
        nvjitlink.destroy(handle)
    frames = [tuple(map(int, numbers)) for numbers in FRAME.findall(log)]
    return {
        "is_machine_code": code.startswith(ELF),
        "registers": max(int(n) for n in re.findall(r"Used (\d+) registers", log)),
        "stack": max(stack for stack, _ in frames),
        "spilled": max(spilled for _, spilled in frames),
    }


def filled(handle, size_of, get):
    """Return the bytes that a getter of the linker writes."""
    buffer = bytearray(size_of(handle))
    get(handle, buffer)
    return bytes(buffer)
