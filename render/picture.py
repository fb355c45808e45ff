"""A picture with its parameters by path: everything that `rasterize` takes.

The paths are those of `adjoint/render/paths.py`. Tests: `tests/render/test_picture.py`.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from adjsim import checks
from render.blending import Softmax
from render.camera import AnyCamera
from render.scene import Scene
from render.soft_raster import SoftRasterizer


Arguments: TypeAlias = tuple[Scene, Any, SoftRasterizer, Mapping[str, Any], tuple[int, int]]
_RASTERIZER, _BLEND = ("sigma", "gamma", "epsilon", "background"), ("kappa",)
_MESH, _TEXTURE = ("face_colors", "vertex_colors", "uv"), ("texels",)
_PLANES = ("near", "far")


@dataclass(frozen=True)
class Picture:
    """Everything that `rasterize` takes, in its order."""

    scene: Scene
    camera: Any  # one, or a sequence of them
    rasterizer: SoftRasterizer
    vertices: Mapping[str, Any]
    size: tuple[int, int]

    @property
    def arguments(self) -> Arguments:
        """The arguments of `rasterize`."""
        return self.scene, self.camera, self.rasterizer, self.vertices, self.size

    @property
    def views(self) -> dict[str, AnyCamera]:
        """The cameras, by the first part of their paths."""
        if isinstance(self.camera, AnyCamera):
            return {"camera": self.camera}
        return {f"camera.{k}": camera for k, camera in enumerate(self.camera)}

    def parameters(self) -> dict[str, np.ndarray]:
        """Return every differentiable parameter by path."""
        values: dict[str, object] = {}
        for name, mesh in self.scene.objects.items():
            values[f"{name}.vertices"] = self.vertices[name]
            for kind in _MESH:
                if getattr(mesh, kind) is not None:
                    values[f"{name}.{kind}"] = getattr(mesh, kind)
            if mesh.texture is not None:
                values[f"{name}.texels"] = mesh.texture.texels
            values |= {f"{name}.{key}": k for key, k in mesh.material.parameters().items()}
        for name, light in self.scene.lights.items():
            values |= {f"{name}.{f.name}": getattr(light, f.name) for f in fields(light)}
        for name, camera in self.views.items():
            values |= {f"{name}.{key}": value for key, value in camera.parameters().items()}
            if isinstance(self.rasterizer.blend, Softmax):
                values |= {f"{name}.{key}": getattr(camera, key) for key in _PLANES}
        values |= {f"rasterizer.{key}": getattr(self.rasterizer, key) for key in _RASTERIZER}
        values |= {f"rasterizer.{key}": k for key, k in vars(self.rasterizer.blend).items()}
        return {path: np.asarray(value, dtype=np.float64) for path, value in values.items()}

    def at(self, values: Mapping[str, Any]) -> "Picture":
        """Return the picture with other values of some parameters; what has none is kept."""
        planes = [f"{name}.{key}" for name in self.views for key in _PLANES]
        for path in values:
            checks.known_key("path in `values`", path, [*self.parameters(), *planes])

        def moved(piece: Any, name: str, keys: Iterable[str], **parts: Any) -> Any:
            changes = {key: new for key, new in parts.items() if new is not getattr(piece, key)}
            changes |= {key: values[f"{name}.{key}"] for key in keys if f"{name}.{key}" in values}
            return dataclasses.replace(piece, **changes) if changes else piece

        objects = {
            name: moved(
                mesh,
                name,
                _MESH,
                texture=mesh.texture and moved(mesh.texture, name, _TEXTURE),
                material=moved(mesh.material, name, mesh.material.parameters()),
            )
            for name, mesh in self.scene.objects.items()
        }
        lights = {
            name: moved(light, name, [field.name for field in fields(light)])
            for name, light in self.scene.lights.items()
        }
        cameras = []
        for name, camera in self.views.items():
            keys = [key for key in (*camera.parameters(), *_PLANES) if f"{name}.{key}" in values]
            seen = {key: values[f"{name}.{key}"] for key in keys}
            cameras.append(camera.with_values(seen) if seen else camera)
        blend = moved(self.rasterizer.blend, "rasterizer", _BLEND)
        same = objects == self.scene.objects and lights == self.scene.lights
        return dataclasses.replace(
            self,
            scene=self.scene if same else Scene(objects, lights),
            camera=cameras[0] if isinstance(self.camera, AnyCamera) else tuple(cameras),
            rasterizer=moved(self.rasterizer, "rasterizer", _RASTERIZER, blend=blend),
            vertices={n: values.get(f"{n}.vertices", x) for n, x in self.vertices.items()},
        )
