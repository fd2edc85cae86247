import pytest

from veriformer.reports.runs import as_set, label, read_results


def test_a_set_reads_back_as_its_runs(run, row, violation, save):
    runs = [run([row(), violation(worst_ratio=float("inf"))], target="a"), run(target="b")]
    found = read_results(save("set.json", as_set(runs)))
    assert [r.implementation["target"] for r in found] == ["a", "b"]
    assert [[(row.key, row.status, row.worst_ratio) for row in r.results] for r in found] == [
        [("softmax.equation[fp32-cpu]", "pass", 0.25), ("softmax.shift[fp32-cpu]", "fail", "inf")],
        [("softmax.equation[fp32-cpu]", "pass", 0.25)],
    ]
    assert as_set(found) == as_set(runs)


def test_a_folder_stands_for_the_results_in_it(tmp_path, run, save):
    save("1.json", run(target="a").to_dict())
    save("2.json", as_set([run(target="b")]))
    assert [r.implementation["target"] for r in read_results(tmp_path)] == ["a", "b"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="got a folder without any"):
        read_results(tmp_path / "empty")


@pytest.mark.parametrize(
    "content", ["[]", "{", '{"schema": "other"}', '{"schema": "veriformer/results-set/1", "runs": [1]}', "\xff"]
)
def test_what_is_no_results_file_is_refused_by_name(tmp_path, content):
    path = tmp_path / "odd.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match=r"odd\.json: expected a results file"):
        read_results(path)


def test_labels_tell_runs_apart_by_as_little_as_needed(run):
    gpu = {**run().environment, "device": "a GPU"}
    runs = [run(target="a"), run(target="b"), run(target="b", environment=gpu), run(target="c"), run(target="c")]
    runs.append(run(target="c", seed="7"))
    assert [found.label for found in label(runs)] == [
        "a",
        "b on cpu",
        "b on a GPU",
        "c on cpu (quick, seed slug) #4",
        "c on cpu (quick, seed slug) #5",
        "c on cpu (quick, seed 7)",
    ]
