"""From the LLVM IR that numba.cuda hands to NVVM to code of this processor, watched.

llvmlite does it all, in memory: modules are linked, optimized, given a call of `emu_load` or
`emu_store` before each load and store, and compiled. Its IR must have opaque pointers, which
`LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS=0` in the environment asks for. Code is kept on disk by
a hash of the IR.
"""

import hashlib
import re
from pathlib import Path

from llvmlite import binding

from adjsim.jit.kernel_cache import cache_base


FOLDER = cache_base() / "emulated"
SIZES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "ptr": 8}
LOAD = re.compile(r"= load (?:volatile )?(.+?), (ptr (?:%\S+|%\".+?\"))(?:,|$)")
STORE = re.compile(r"^\s+store (?:volatile )?(.+?) \S+, (ptr (?:%\S+?|%\".+?\"))(?:,|$)")
WHOLE = re.compile(r"call void @llvm\.mem(cpy|move|set)\.\S+\((.*), i1 ")
LONG = re.compile(r'@"([^"]{151,})"')
SHARED = re.compile(r'^@"(.+)" = (?:external )?addrspace\(3\) global \[(\d+) x (\w+)\].*\n', re.M)
SHARED_AT = 0x100000000000 + (8 << 30) - (256 << 10)  # as in device.c
DYNAMIC_SIZE = 'asm sideeffect "mov.u32 $0, %dynamic_smem_size;", "=r"()'
DECLARED = "\ndeclare i32 @emu_dynamic_size()\n"
ATOMIC = re.compile(r"= atomicrmw (?:volatile )?\w+ (ptr \S+), (\w+) ")
WATCH = "".join(f"declare void @emu_{what}(ptr, i64)\n" for what in ("load", "store", "atomic"))


def for_this_processor(text: str, triple: str, layout: str) -> str:
    """Return a module's text with the target changed and special registers made functions."""
    head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
    theirs = ("target ", "!nvvm", '@"llvm.used"', "@llvm.used")
    lines = [line for line in text.splitlines() if not line.startswith(theirs)]
    # The linker drops what is `linkonce` and not yet called.
    whole = head + "\n".join(lines).replace("define linkonce_odr", "define weak_odr")
    return LONG.sub(lambda match: f'@"{short(match[1])}"', whole).replace("llvm.nvvm.", "emu.nvvm.")


def placed(texts: list[str]) -> tuple[list[str], int]:
    """Return modules whose shared arrays have addresses, and the bytes of those of fixed size.

    Arrays of dynamic size are one array, behind the others.
    """
    places, size = {}, 0
    for name, count, kind in (
        declaration for text in texts for declaration in SHARED.findall(text)
    ):
        places[name] = size if int(count) else None
        size += -(-int(count) * SIZES[kind] // 16) * 16
    modules = []
    for original in texts:
        text = original
        for name, at in places.items():
            address = f"inttoptr (i64 {SHARED_AT + (size if at is None else at)} to ptr)"
            pointer = f'addrspacecast ptr addrspace(3) @"{name}" to ptr'
            text = text.replace(pointer, f"getelementptr i8, ptr {address}, i64 0")
        if DYNAMIC_SIZE in text:
            text = text.replace(DYNAMIC_SIZE, "@emu_dynamic_size()") + DECLARED
        modules.append(SHARED.sub("", text))
    return modules, size


def short(name: str) -> str:
    """Return a name of at most 150 characters; LLVM puts names into those of labels."""
    return name if len(name) <= 150 else "_" + hashlib.sha256(name.encode()).hexdigest()[:24]


def watched(text: str) -> str:
    """Return optimized IR with a call before each load and store of memory that is not its own."""
    allocas, lines = set(), []
    for line in text.splitlines():
        if line.startswith("define"):
            allocas = set()
        if " = alloca " in line:
            allocas.add("ptr " + line.split(" = ")[0].strip())
        for pattern, call in ((LOAD, "emu_load"), (STORE, "emu_store")):
            if (match := pattern.search(line)) and match[2] not in allocas:
                lines.append(f"  call void @{call}({match[2]}, i64 {SIZES[match[1]]})")
        if match := ATOMIC.search(line):
            lines.append(f"  call void @emu_atomic({match[1]}, i64 {SIZES[match[2]]})")
        if match := WHOLE.search(line):
            target, source, size = match[2].rsplit(", ", 2)
            sides = [("emu_store", target), *([("emu_load", source)] if match[1] != "set" else [])]
            for call, side in sides:
                pointer = "ptr " + side.split()[-1]
                if pointer not in allocas and "@" not in pointer:
                    lines.append(f"  call void @{call}({pointer}, {size})")
        lines.append(line)
    return "\n".join(lines) + "\n" + WATCH


def packed(name: str, kinds: list[str]) -> str:
    """Return `NAME__packed(ptr arguments)`: calls a kernel as a driver does, by an array."""
    lines = [f'define void @"{name}__packed"(ptr %all) {{']
    for i, kind in enumerate(kinds):
        lines.append(f"  %g{i} = getelementptr ptr, ptr %all, i64 {i}")
        lines.append(f"  %p{i} = load ptr, ptr %g{i}")
        lines.append(f"  %a{i} = load {kind}, ptr %p{i}")
    given = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    return "\n".join([*lines, f'  call void @"{short(name)}"({given})', "  ret void", "}", ""])


def linked(modules: list[binding.ModuleRef]) -> binding.ModuleRef:
    """Return modules as one, linked by pairs: each link takes as long as both are large."""
    while len(modules) > 1:
        pairs = list(zip(modules[::2], modules[1::2], strict=False))
        for first, other in pairs:
            first.link_in(other)
        modules = modules[::2]
    return modules[0]


def machine() -> binding.TargetMachine:
    """Return this processor as a target."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=1,
        codemodel="jitdefault",
        jit=True,
    )


def code_of(texts: list[str], entry: str) -> bytes:
    """Return the object file of a kernel, given as the texts of its modules."""
    texts = sorted(set(texts))
    recipe = Path(__file__).read_bytes() + binding.get_host_cpu_name().encode()
    key = hashlib.sha256(recipe + "\0".join(texts).encode()).hexdigest()[:32]
    kept = FOLDER / f"{key}.o"
    if kept.exists():
        return kept.read_bytes()
    texts, shared = placed(texts)
    target = machine()
    layout = str(target.target_data)
    whole = linked(
        [binding.parse_assembly(for_this_processor(text, target.triple, layout)) for text in texts]
    )
    for function in whole.functions:
        if not function.is_declaration and function.name != short(entry):
            function.linkage = "internal"
    kinds = [str(argument.type) for argument in whole.get_function(short(entry)).arguments]
    tuning = binding.create_pipeline_tuning_options(speed_level=2)
    tuning.loop_vectorization = tuning.slp_vectorization = False  # they would merge accesses
    passes = binding.create_pass_builder(target, tuning)
    passes.getModulePassManager().run(whole, passes)
    size = f'define i64 @"{entry}__shared"() {{\n  ret i64 {shared}\n}}\n'
    whole = binding.parse_assembly(watched(str(whole)) + packed(entry, kinds) + size)
    asked = {each.name for each in whole.functions if each.is_declaration}
    asked = {name for name in asked if not name.startswith("llvm.")}
    if missing := sorted(name for name in asked if not binding.address_of_symbol(name)):
        raise NotImplementedError(f"kernels call what device.c has not: {', '.join(missing)}")
    code = target.emit_object(whole)
    FOLDER.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{hashlib.sha256(code).hexdigest()[:8]}")
    partial.write_bytes(code)
    partial.replace(kept)
    return code
