"""Meshes: generators, files, embedded surfaces. Names are loaded on first use."""

from typing import TYPE_CHECKING

from adjsim.lazy import lazy_names


if TYPE_CHECKING:
    from adjsim.meshes.ball import ball_tets as ball_tets
    from adjsim.meshes.chains import Chain as Chain, chain as chain
    from adjsim.meshes.files import read_mesh as read_mesh, write_tet_mesh as write_tet_mesh
    from adjsim.meshes.grid import box_tets as box_tets
    from adjsim.meshes.hinges import mesh_hinges as mesh_hinges
    from adjsim.meshes.shapes import shape as shape
    from adjsim.meshes.sheets import sheet as sheet, walker as walker
    from adjsim.meshes.surfaces import (
        blocks as blocks,
        prism as prism,
        tube as tube,
        turned as turned,
    )
    from adjsim.meshes.tet_mesh import TetMesh as TetMesh
    from adjsim.meshes.triangle_mesh import TriangleMesh as TriangleMesh

__getattr__, __dir__ = lazy_names(__name__)
