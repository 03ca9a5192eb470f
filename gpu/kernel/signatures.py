"""The kernels of a file with their parameters and launch extents, as shown in forms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu.base.errors import CompileError, KernelError
from gpu.base.resource_limits import limit_resources
from gpu.kernel.host_launches import find_host_launch
from gpu.messages.kernels import KernelParameter, Signature
from gpu.simulator.simulated_module import SimulatedModule
from gpu.simulator.types import Pointer, Scalar, Struct, Type, leaves


def read_signatures(
    text: str,
    path: Path,
    defines: Mapping[str, int | str],
    instances: tuple[str, ...] = (),
    include_dirs: Sequence[str] = (),
) -> tuple[Signature, ...]:
    """Return the signatures of a file's kernels.

    Parameters
    ----------
    text : str
        The source.
    path : Path
        The file's path.
    defines : mapping
        Macros.
    instances : tuple of str
        Template instantiations to include: "reduce<float, 256>".
    include_dirs : sequence of str
        Folders to search for includes, besides the file's own.

    Raises
    ------
    CompileError
        The file as a whole does not compile.
    KernelError
        The file has no kernels.
    """
    with limit_resources():
        module = SimulatedModule(text, path, defines, tuple(map(Path, include_dirs)), tolerant=True)
        return _build_signatures(module, text, path, defines, instances)


def _build_signatures(
    module: SimulatedModule, text: str, path: Path, defines: Mapping[str, int | str], instances: tuple[str, ...]
) -> tuple[Signature, ...]:
    if not (module.kernels or module.overloads or module.templates):
        try:
            module.kernel("")
        except CompileError:
            raise
        except KernelError:
            raise KernelError(f"{path.name} has no __global__ function.") from None
    plain = [_build_signature(module, name, text, defines) for name in (*module.kernels, *module.overloads, *instances)]
    return (*plain, *(Signature(name, template=True) for name in module.templates))


def _build_signature(module: SimulatedModule, name: str, text: str, defines: Mapping[str, int | str]) -> Signature:
    try:
        parameters = module.kernel(name).parameters
    except (CompileError, KernelError) as error:
        return Signature(name, refusal=error.message)
    launch = find_host_launch(text, name, defines)
    return Signature(
        name,
        tuple(_build_parameter(each, type, text) for each, type in parameters),
        variables=(
            *(KernelParameter(each, str(type), "variable") for each, type in module.variables.items()),
            *(KernelParameter(texture, "texture", "texture") for texture in module.textures),
        ),
        grid=launch.grid,
        block=launch.block,
        shared_bytes=launch.shared_bytes if launch.lines else None,
    )


def _build_parameter(name: str, type: Type, text: str) -> KernelParameter:
    if re.search(rf"\bcudaTextureObject_t\s+(?:const\s+)?{re.escape(name)}\s*[,)]", text):
        return KernelParameter(name, "cudaTextureObject_t", "pointer", read_only=True, parts=0)
    if isinstance(type, Pointer):
        read_only = re.search(rf"\bconst\b[^,()]*\*[^,()]*\b{re.escape(name)}\s*[,)]", text) is not None
        return KernelParameter(name, f"const {type}" if read_only else str(type), "pointer", read_only, 0)
    if isinstance(type, Struct):
        return KernelParameter(name, str(type), "struct", parts=len(leaves(type)))
    assert isinstance(type, Scalar)
    return KernelParameter(name, str(type), "real" if type.dtype.kind == "f" else "integer")
