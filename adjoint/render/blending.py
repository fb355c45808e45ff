r"""Tangent and adjoint of `render/blending.py`: read the two files side by side.

Over is undone from the last fragment to the first: adj_T is the adjoint of the light that
still passes, and with D' = D (1 - D) the adjoint of a logit is

    adj_y_j = D_j (1 - D_j) T_j (adj_w_j - adj_T_{j+1})

so nothing is divided by 1 - D, which rounds to 0 inside a face. In Softmax the largest
logit is a shift that cancels: it is held. Nearness n = (far - z)/(far - near) has the slopes n and
1 - n over far - near in near and far. alpha = 1 - prod (1 - D) has the slope
D_j prod (1 - D) with respect to y_j, again without a division.

The order in depth and the cut at D_min are frozen.
"""

import math
from typing import NamedTuple

import numpy as np

from adjoint.render.faces.nearest import nearest_jvp_body, nearest_vjp_body
from adjsim.jit.backend import device_fn, lit
from render.blending import OVER, SOFTMAX, softmax_sums


class FragmentTangents(NamedTuple):
    """Tangents of the fragments of a tile."""

    y: np.ndarray  # (capacity,)
    z: np.ndarray  # (capacity,)
    rgb: np.ndarray  # (capacity, 3)


class FragmentAdjoints(NamedTuple):
    """Adjoints of the fragments of a tile, and what the replay keeps for them."""

    y: np.ndarray  # (capacity,)
    z: np.ndarray  # (capacity,)
    w: np.ndarray  # (capacity,) weight of the colour: adj_rgb = w adj of the pixel's RGB
    T: np.ndarray  # (capacity,) light that reaches each fragment, list by list
    rgba: np.ndarray  # (pixels of a tile, 4) adjoints of the pixels


@device_fn
def over_jvp_body(first, last, fragments, tangents, background, tan_background):
    """Tangent of the RGBA of a pixel."""
    zero = lit(0.0, background[0])
    tan_r, tan_g, tan_b, T, tan_T = zero, zero, zero, lit(1.0, zero), zero
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        D, rest = fragments.D[q], fragments.rest[q]
        tan_D = D * rest * tangents.y[q]  # (1)
        w = T * D
        tan_w = tan_T * D + T * tan_D  # (2)
        tan_r += tan_w * fragments.rgb[q, 0] + w * tangents.rgb[q, 0]  # (3)
        tan_g += tan_w * fragments.rgb[q, 1] + w * tangents.rgb[q, 1]
        tan_b += tan_w * fragments.rgb[q, 2] + w * tangents.rgb[q, 2]
        tan_T = tan_T * rest - T * tan_D  # (4)
        T = T * rest
    tan_r += tan_T * background[0] + T * tan_background[0]  # (5)
    tan_g += tan_T * background[1] + T * tan_background[1]
    tan_b += tan_T * background[2] + T * tan_background[2]
    return tan_r, tan_g, tan_b, -tan_T  # (6)


@device_fn
def over_vjp_body(first, last, fragments, background, adj_rgba, adj):
    """Pull adj_rgba back to the fragments of a pixel; return adj_background."""
    adj_r, adj_g, adj_b, adj_alpha = adj_rgba
    T = lit(1.0, background[0])
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        adj.T[k] = T
        T = T * fragments.rest[q]  # (4) replayed

    # (6) alpha = 1 - T,  (5) rgb += T background
    adj_T = adj_r * background[0] + adj_g * background[1] + adj_b * background[2] - adj_alpha
    adj_background = (T * adj_r, T * adj_g, T * adj_b)

    for behind in range(np.uint64(last - first)):
        k = np.uint64(last - 1) - behind
        q = np.uint64(fragments.order[k])
        D, rest, T_k = fragments.D[q], fragments.rest[q], adj.T[k]

        # (4) T = T rest,  rest = 1 - D
        adj_rest = T_k * adj_T
        adj_T = rest * adj_T

        # (3) rgb += w rgb_q
        adj_w = (
            adj_r * fragments.rgb[q, 0] + adj_g * fragments.rgb[q, 1] + adj_b * fragments.rgb[q, 2]
        )
        adj.w[q] = T_k * D

        # (2) w = T D
        adj_D = T_k * adj_w
        adj_T += D * adj_w

        # (1) D = sigmoid(y)
        adj.y[q] = D * rest * (adj_D - adj_rest)
        adj.z[q] = lit(0.0, D)
    return adj_background


@device_fn
def softmax_logit_jvp(rest, z, tan_y, tan_z, settings, tan_settings):
    """Tangent of u = log D + z~/gamma."""
    tan_gamma, _, tan_near, tan_far = tan_settings
    depth_range = settings.far - settings.near
    nearness = (settings.far - z) / depth_range
    tan_log_D = rest * tan_y  # (1)
    tan_range = nearness * tan_near + (lit(1.0, nearness) - nearness) * tan_far
    tan_nearness = (tan_range - tan_z) / depth_range  # (2)
    tan_depth = (tan_nearness - nearness / settings.gamma * tan_gamma) / settings.gamma
    return tan_log_D + tan_depth  # (3)


@device_fn
def softmax_jvp_body(first, last, fragments, tangents, settings, tan_settings, background, tan_bg):
    """Tangent of the RGBA of a pixel; (3)-(6) together: w'_j (C_j - rgb)/total."""
    gamma = settings.gamma
    tan_gamma, tan_epsilon = tan_settings[0], tan_settings[1]
    largest, w, total, (r, g, b), T = softmax_sums(first, last, fragments, settings, background)
    R, G, B = r / total, g / total, b / total
    tan_w = w * (tan_epsilon - settings.epsilon / gamma * tan_gamma) / gamma  # (2)
    tan_r = tan_w * (background[0] - R) + w * tan_bg[0]
    tan_g = tan_w * (background[1] - G) + w * tan_bg[1]
    tan_b = tan_w * (background[2] - B) + w * tan_bg[2]
    tan_log_T = lit(0.0, total)
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])
        D, rest = fragments.D[q], fragments.rest[q]
        tan_log_T -= D * tangents.y[q]  # (1)
        w = math.exp(fragments.u[q] - largest)
        tan_w = w * softmax_logit_jvp(
            rest, fragments.z[q], tangents.y[q], tangents.z[q], settings, tan_settings
        )  # (3)
        tan_r += tan_w * (fragments.rgb[q, 0] - R) + w * tangents.rgb[q, 0]  # (4), (5)
        tan_g += tan_w * (fragments.rgb[q, 1] - G) + w * tangents.rgb[q, 1]
        tan_b += tan_w * (fragments.rgb[q, 2] - B) + w * tangents.rgb[q, 2]
    return tan_r / total, tan_g / total, tan_b / total, -T * tan_log_T  # (6)


@device_fn
def softmax_vjp_body(first, last, fragments, settings, background, adj_rgba, adj):
    """Pull adj_rgba back to the fragments: adj_background, and gamma, epsilon, near and far."""
    gamma, depth_range = settings.gamma, settings.far - settings.near
    largest, w_bg, total, (r, g, b), T = softmax_sums(
        first, last, fragments, settings, background
    )  # (1)-(5) replayed
    c = lit(1.0, total) / total
    R, G, B = c * r, c * g, c * b  # (6) replayed

    # (6) rgb = sum/total,  alpha = 1 - T
    adj_r, adj_g, adj_b = c * adj_rgba[0], c * adj_rgba[1], c * adj_rgba[2]
    adj_log_T = -T * adj_rgba[3]

    adj_near, adj_far = lit(0.0, total), lit(0.0, total)  # times gamma (far - near)
    for k in range(np.uint64(first), np.uint64(last)):
        q = np.uint64(fragments.order[k])

        # (5), (4) sum += w rgb_q, total += w: together (rgb_q - rgb)/total
        adj_w = (
            adj_r * (fragments.rgb[q, 0] - R)
            + adj_g * (fragments.rgb[q, 1] - G)
            + adj_b * (fragments.rgb[q, 2] - B)
        )
        # (3) w = exp(u - largest)
        w = math.exp(fragments.u[q] - largest)
        adj_u = w * adj_w
        adj.w[q] = c * w

        # (1) u = log D + nearness/gamma,  log T += log(1 - D)
        D, rest = fragments.D[q], fragments.rest[q]
        adj.y[q] = rest * adj_u - D * adj_log_T
        adj.z[q] = -adj_u / (gamma * depth_range)
        nearness = (settings.far - fragments.z[q]) / depth_range
        adj_near += adj_u * nearness
        adj_far += adj_u * (lit(1.0, nearness) - nearness)

    # (2) w_bg = exp(epsilon/gamma - largest)
    adj_u_bg = w_bg * (
        adj_r * (background[0] - R) + adj_g * (background[1] - G) + adj_b * (background[2] - B)
    )
    adj_gamma = -(adj_near + adj_u_bg * settings.epsilon) / (gamma * gamma)
    scale = lit(1.0, gamma) / (gamma * depth_range)
    adj_settings = (adj_gamma, adj_u_bg / gamma, scale * adj_near, scale * adj_far)
    return (w_bg * adj_r, w_bg * adj_g, w_bg * adj_b), adj_settings


@device_fn
def blend_jvp_body(
    first, last, fragments, tangents, settings, tan_settings, background, tan_background
):
    """Tangent of the RGBA of a pixel in any mode; tan_settings of gamma, epsilon, near, far."""
    if settings.blend == OVER:
        return over_jvp_body(first, last, fragments, tangents, background, tan_background)
    if settings.blend == SOFTMAX:
        return softmax_jvp_body(
            first, last, fragments, tangents, settings, tan_settings, background, tan_background
        )
    return nearest_jvp_body(first, last, fragments, tangents, tan_background)


@device_fn
def blend_vjp_body(first, last, fragments, settings, background, adj_rgba, adj):
    """Pull adj_rgba back in any mode: adj_background, and gamma, epsilon, near and far."""
    zero = lit(0.0, settings.gamma)
    none = (zero, zero, zero, zero)
    if settings.blend == OVER:
        return over_vjp_body(first, last, fragments, background, adj_rgba, adj), none
    if settings.blend == SOFTMAX:
        return softmax_vjp_body(first, last, fragments, settings, background, adj_rgba, adj)
    return nearest_vjp_body(first, last, fragments, adj_rgba, adj), none
