"""What `benchmarks.paper_tables` makes of the results of a folder."""

from benchmarks.paper_tables import evaluations_by_look


def test_evaluations_stand_by_method_and_bar_and_bars_that_none_reaches_are_left_out():
    searches = [
        {"method": "adam", "kind": kind, "1e-02": count, "1e-04": None}
        for kind, count in (("color", 58), ("shading", None), ("texture", 56))
    ]
    assert evaluations_by_look(searches) == [
        ["method, and relative error", "color", "shading", "texture"],
        ["adam: 1e-02", "58", "never", "56"],
    ]
