"""Derived metrics from counters: requests, sectors, bank conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpu.messages.kernels import LineFigures

_OPS = ("ld", "st", "red", "atom")
REQUESTS, SECTORS, MOVED_BYTES, REQUESTED_BYTES = (
    tuple(pattern.format(op) for op in _OPS)
    for pattern in (
        "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum",
        "l1tex__t_bytes_pipe_lsu_mem_global_op_{}.sum",
        "global_bytes_asked_op_{}",
    )
)
SHARED_REQUESTS = ("smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum")
CONFLICTS = (
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
)
WAVEFRONTS = tuple(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum" for op in ("ld", "st", "atom"))
SHARED_ATOMICS = "smsp__inst_executed_op_shared_atom.sum"
ATOMIC_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum"


def compute_line_figures(counts: Mapping[str, int | float]) -> LineFigures:
    """Return the metrics of a source line."""
    requests = sum_counters(counts, REQUESTS)
    shared = sum_counters(counts, (*SHARED_REQUESTS, SHARED_ATOMICS))
    return LineFigures(
        statements=int(counts.get("warp_statements", 0)),
        lanes=float(counts.get("lanes_per_warp_statement", 0)),
        sectors=sum_counters(counts, SECTORS) / requests if requests else None,
        conflicts=sum_counters(counts, (*CONFLICTS, ATOMIC_CONFLICTS)) if shared else None,
    )


def sum_counters(counts: Mapping[str, int | float], names: Sequence[str]) -> int:
    """Return the sum of the named counters; missing counters count as 0."""
    return int(sum(counts.get(name, 0) for name in names))
