import copy

import pytest

from veriformer.reports.mutation_matrix import Kills, read_kills


def test_survivors_false_alarms_and_escapes_are_told(documents):
    kills = Kills(documents["mutants"])
    assert not kills.sound
    assert [mutant["id"] for mutant in kills.survivors] == ["SM-99"]
    assert [cell["member"] for cell in kills.false_alarms] == ["exp2"]
    assert [cell["member"] for cell in kills.escapes] == ["zeros"]
    assert kills.sentence == (
        "1 of 2 mutants killed, the median after 3 examples; 1 false alarm over 1 correct variant; "
        "1 escape of 1 empty adapter."
    )


def test_sound_means_no_gap_at_all(documents):
    document = copy.deepcopy(documents["mutants"])
    document["mutants"] = document["mutants"][:1]
    document["cells"] = [cell for cell in document["cells"] if cell["member"] == "SM-02"]
    assert Kills(document).sound
    document["cells"][0]["status"] = "harness-error"
    assert not Kills(document).sound
    assert not Kills({**document, "mutants": [], "cells": []}).sound


def test_the_table_has_a_mark_for_every_requirement_that_was_run(documents):
    [table] = Kills(documents["mutants"]).tables
    assert (table.operation, table.laws, table.killed) == ("softmax", ["equation", "shift"], 1)
    marks = {row.mutant["id"]: [mark and mark["killed"] for mark in row.marks] for row in table.rows}
    assert marks == {"SM-02": [False, True], "SM-99": [False, None]}


def test_a_kill_in_any_dtype_counts(documents):
    document = copy.deepcopy(documents["mutants"])
    document["cells"][3] |= {"status": "fail", "killed": True}
    [table] = Kills(document).tables
    assert table.rows[1].marks[0]["dtype"] == "bf16"


def test_precedents_are_the_mutants_that_a_requirement_kills(documents):
    kills = Kills(documents["mutants"])
    assert [mutant["id"] for mutant in kills.precedents("softmax.shift")] == ["SM-02"]
    assert kills.precedents("softmax.equation") == []


def test_another_document_is_refused_by_name(save, documents):
    with pytest.raises(
        ValueError, match=r"odd\.json: expected a kill matrix .*schema: 'veriformer/mutants/1' was expected"
    ):
        read_kills(save("odd.json", documents["mutants"] | {"schema": "other"}))
    cells = [documents["mutants"]["cells"][0] | {"killed": "perhaps"}]
    path = save("odd.json", documents["mutants"] | {"cells": cells})
    with pytest.raises(ValueError, match=r"odd\.json: expected a kill matrix .*cells/0/killed"):
        read_kills(path)


def test_a_kill_matrix_reads_back(save, documents):
    assert read_kills(save("mutants.json", documents["mutants"])).document == documents["mutants"]
