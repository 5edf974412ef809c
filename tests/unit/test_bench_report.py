"""The line that a benchmark prints: ratios of rounds, not of medians."""

from bench.report import compare, summary


def test_a_ratio_is_taken_in_each_round():
    ours, limit = [10.0, 40.0, 30.0], [20.0, 50.0, 200.0]

    # The medians, 30 and 50, would give 0.6.
    assert compare(ours, limit) == (0.5, [0.15, 0.8])


def test_a_line_has_a_ratio_and_its_range_for_the_limit_and_for_the_peer():
    rounds = {"ours": [2.0, 9.0, 4.0], "limit": [4.0, 10.0, 10.0], "peer": [1.0, 3.0, 1.0]}

    line = summary("x", rounds, digits=1, goal=None, note="n", more=7)

    assert (line["ours"], line["limit"], line["peer"], line["more"]) == (4.0, 10.0, 1.0, 7)
    assert (line["ratio"], line["ratio_range"]) == (0.5, [0.4, 0.9])
    assert (line["ratio_to_peer"], line["ratio_to_peer_range"]) == (3.0, [2.0, 4.0])
    assert line["spread"]["ours"] == [2.0, 9.0]


def test_without_a_peer_there_is_no_ratio_to_it():
    line = summary("x", {"ours": [1.0], "limit": [2.0]}, digits=None, goal=None, note="n")

    assert line["peer"] is None
    assert "ratio_to_peer" not in line
