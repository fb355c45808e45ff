"""Exercises: solutions are right, every classic mistake is named, bad files get one message."""

import csv
import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest

from studies.exercises.answers import answers_of
from studies.exercises.catalogue import CHAPTERS, KINDS, exercises
from studies.exercises.grading import grade
from studies.exercises.student import run_student
from studies.runs.errors import StudyError
from tests.studies.command import Command


EACH = pytest.mark.parametrize("exercise", exercises().values(), ids=lambda e: e.slug)
SPRING = exercises()[9]
ANSWERING = "import os, sys\nopen(sys.argv[3], 'w').write('{}')\nos._exit(0)"


def graded(exercise, solution):
    """Grade what a student wrote below the given part."""
    source = exercise.given + solution
    return grade(exercise, answers_of(exercise, source.encode(), "mine.py"), source)


def test_there_are_at_least_twenty_from_a_product_to_a_frame():
    assert list(exercises()) == list(range(1, len(exercises()) + 1))
    assert len(exercises()) >= 20


def test_every_exercise_belongs_to_a_chapter_of_the_course():
    numbers = [number for of_chapter in CHAPTERS.values() for number in of_chapter]
    assert sorted(numbers) == list(exercises())
    page = (Path(__file__).parents[3] / "docs" / "course" / "index.md").read_text("utf-8")
    for chapter, of_chapter in CHAPTERS.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| [{chapter}. ")]
        said = {
            number
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", row.split("|")[-2])
            for number in range(int(first), int(last or first) + 1)
        }
        assert said == set(of_chapter)


@EACH
def test_the_solution_is_right(exercise):
    result = graded(exercise, exercise.solution)
    assert result.passed
    # Rounding of a difference over STEP = 1e-6: 1e-10 of the values, which may exceed the slope.
    assert float(result.lines[-1].split()[-1].rstrip(".")) < 1e-7


@EACH
def test_every_classic_mistake_is_found_and_named(exercise):
    mistakes = exercise.mistakes
    assert len({exercise.mutated(mistake) for mistake in mistakes} - {None}) >= 5
    for mistake in mistakes:
        result = graded(exercise, exercise.mutated(mistake))
        assert not result.passed
        assert result.mistakes == [mistake]
        report = "\n".join(result.lines)
        assert f"({mistake.line}) `{exercise.lines[mistake.line]}`:\n" in report
        assert f"    {KINDS[mistake.kind]} {mistake.hint}".rstrip() in report


@EACH
def test_the_solution_is_not_in_the_file(exercise):
    text = exercise.student_file("adjsim exercise 1 --check")
    assert exercise.given.split('"""', 2)[2].strip() in text
    for line in exercise.solution.splitlines():
        assert not re.match(r"\s+adj_", line) or line not in text
    with pytest.raises(StudyError, match=r"mine.py, line \d+: the gap is still there"):
        answers_of(exercise, text.encode(), "mine.py")


def test_two_mistakes_at_once_are_both_named():
    sign, overwritten = SPRING.mistakes[:2]
    assert set(graded(SPRING, SPRING.mutated(sign, overwritten)).mistakes) == {sign, overwritten}
    exercise = exercises()[18]  # both in adj_F
    pair = exercise.mistakes[2], exercise.mistakes[3]
    assert set(graded(exercise, exercise.mutated(*pair)).mistakes) == set(pair)


def test_the_line_of_the_student_is_named():
    mistake = SPRING.mistakes[0]
    source = SPRING.given + SPRING.mutated(mistake)
    line = 1 + source[: source.index("adj_l0 = k")].count("\n")
    result = graded(SPRING, SPRING.mutated(mistake))
    assert f"Line {line}, undoing (3)" in "\n".join(result.lines)
    quotient = exercises()[3]
    (swapped,) = [candidate for candidate in quotient.mistakes if candidate.kind == "swapped"]
    source = quotient.given + quotient.mutated(swapped)
    line = source[: source.rindex("return ")].count("\n") + 1
    result = graded(quotient, quotient.mutated(swapped))
    assert any(text.startswith(f"Line {line}, undoing") for text in result.lines)


HINGE, LOOP = exercises()[19], exercises()[12]


def without(exercise, *parts):
    """Return the solution without some of its lines."""
    solution = exercise.solution
    for text in parts:
        assert solution.count(text) == 1
        solution = solution.replace(text, "")
    return solution


def test_a_path_that_is_forgotten_is_named_and_no_line_is_blamed():
    wrong = without(
        HINGE,
        "    adj_l = -s / l * adj_s\n",
        "    # (3) l = |e|\n    adj_e = adj_e + adj_l / l * e\n",
    )
    text = "\n".join(graded(HINGE, wrong).lines)
    assert "\nUndoing (3) `l = np.sqrt(e @ e)`:\n    A term is missing." in text
    assert "Line " not in text


def test_lines_undone_in_the_wrong_order_are_named():
    three, two = "        adj_v = adj_v + DT * adj_x\n", "        adj_f = DT * adj_v\n"
    wrong = LOOP.solution.replace(two, "").replace(three, two + three)
    text = "\n".join(graded(LOOP, wrong).lines)
    assert "Undoing (2) `v = v + DT * f`:\n    Lines are undone in the wrong order." in text
    assert "Undo (3) before (2)." in text
    assert "Line " not in text


@EACH
def test_a_term_that_is_missing_is_named_at_its_line(exercise):
    for mistake in exercise.derived:
        try:
            result = graded(exercise, exercise.mutated(mistake) or exercise.solution)
        except StudyError:
            continue  # undone in this order, a line needs what is not there yet
        if result.passed:
            continue  # the order of these lines does not matter
        assert result.mistakes or any("nothing flows into it" in line for line in result.lines)
        if mistake.kind == "dropped" and result.mistakes == [mistake]:
            assert f"({mistake.line}) `" in "\n".join(result.lines)


def test_a_term_that_is_missing_beside_another_mistake_is_named():
    wrong = without(HINGE, "    adj_e = adj_e + np.cross(adj_n, b)\n").replace(
        "adj_b = np.cross(e, adj_n)", "adj_b = np.cross(adj_n, e)"
    )
    text = "\n".join(graded(HINGE, wrong).lines)
    assert "Undoing (2) `n = np.cross(b, e)`:\n    A term is missing." in text
    assert "adj_b has the wrong sign." in text


def test_lines_with_a_semicolon_are_found():
    wrong = SPRING.solution.replace("    adj_l = k", "    first = 1.0; adj_l = 0.3 + k")
    line = 1 + (SPRING.given + wrong)[: (SPRING.given + wrong).index("first = 1.0")].count("\n")
    text = "\n".join(graded(SPRING, wrong).lines)
    assert f"`adj_l` is the first whose value differs from ours; you set it in line {line}." in text


def test_an_unknown_mistake_is_described_by_its_numbers():
    wrong = SPRING.solution.replace("adj_l = k", "adj_l = 0.3 + k").replace(
        "adj_k = ", "adj_k = 7 * "
    )
    text = "\n".join(graded(SPRING, wrong).lines)
    assert "adj_k is 7 times too large" in text
    assert "`adj_l` is the first whose value differs from ours; you set it in line" in text
    assert "Dot test, x0 alone: <J t, c> = " in text
    exercise = exercises()[1]
    wrong = exercise.solution.replace("adj_a = b * adj_y", "(adj_a, _) = 0.3 + b * adj_y, 0.0")
    assert "`adj_a` is the first whose value differs" in "\n".join(graded(exercise, wrong).lines)
    quotient = exercises()[3]
    lines = graded(
        quotient, quotient.solution.replace("return adj_a,", "return 0.0 * adj_a,")
    ).lines
    assert "adj_a is 0: nothing flows into it." in lines
    assert not any("swapped" in line or "missing" in line for line in lines)
    product = exercises()[6]
    body = "def matrix_vector_vjp(A, x, adj_y):\n    return {}, A.T @ adj_y\n"
    text = "\n".join(graded(product, body.format("np.zeros((3, 3))")).lines)
    assert re.search(r"adj_A +WRONG\n +adj_x +right", text)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def product_vjp(a, b, adj_y:", "does not parse: line 1"),
        ("\0", "mine.py"),
        ("x = 1", "defines no function `product_vjp`"),
        ("def product_vjp(a, b, adj_y):\n    return c, b", r"line 2 raises NameError: name 'c'"),
        ("import sys\nsys.exit()", "line 2 raises SystemExit"),
        ("def product_vjp(a, b):\n    return a, b", "raises TypeError: product_vjp"),
        ("def product_vjp(a, b, adj_y):\n    return a", "a tuple of adj_a, adj_b, got float"),
        ("def product_vjp(a, b, adj_y):\n    return a, b, a", "adj_a, adj_b, got 3 values"),
        (
            "def product_vjp(a, b, adj_y):\n    return None, b",
            "must be made of real numbers, got a N",
        ),
        ("def product_vjp(a, b, adj_y):\n    return 1j, b", "real numbers, got a complex"),
        ("def product_vjp(a, b, adj_y):\n    return [1.0], b", r"shape of `a`, \(\), got \(1,\)"),
        ("def product_vjp(a, b, adj_y):\n    return float('nan'), b", "holds NaN or infinity: nan"),
        ("def product_vjp(a, b, adj_y):\n    return product_vjp(a, b, 1)", "RecursionError"),
    ],
)
def test_a_bad_file_is_one_message(source, message):
    with pytest.raises(StudyError, match=message):
        answers_of(exercises()[1], source.encode(), "mine.py")


DIFFERENCES = """
def spring_vjp(x0, x1, l0, k, adj_f0):
    inputs, h = [x0, x1, l0, k], 1e-6
    found = []
    for i, value in enumerate(inputs):
        own = np.zeros(np.shape(value))
        for at in np.ndindex(np.shape(value)):
            way = np.zeros(np.shape(value))
            way[at] = h
            ahead, behind = (
                {name}(*inputs[:i], value + s * way, *inputs[i + 1 :]) for s in (1, -1)
            )
            own[at] = (ahead - behind) @ adj_f0 / (2 * h)
        found.append(own)
    return tuple(found)
"""


@pytest.mark.parametrize("name", ["spring", "other"])
def test_differences_of_the_forward_function_are_refused(name):
    copy = SPRING.given.split("import numpy as np\n")[1].replace("def spring", "def other")
    source = SPRING.given + copy + DIFFERENCES.replace("{name}", name)
    with pytest.raises(StudyError, match=r"calls `spring` with other inputs.* are no adjoint"):
        answers_of(SPRING, source.encode(), "mine.py")


def test_the_forward_function_may_be_replayed():
    source = SPRING.given + SPRING.solution.replace(
        "    adj_s = r", "    f = spring(x0, x1, l0, k)\n    adj_s = r"
    )
    assert grade(SPRING, answers_of(SPRING, source.encode(), "mine.py"), source).passed


@pytest.mark.parametrize(
    "line",
    [
        "from studies.exercises.tasks.e09_spring import spring_vjp",
        "import adjoint.forces.springs as a",
    ],
)
def test_imports_of_this_project_are_refused(line):
    source = SPRING.given + SPRING.solution + line
    with pytest.raises(StudyError, match=r"mine.py, line \d+, imports `\w+\..* with NumPy"):
        answers_of(SPRING, source.encode(), "mine.py")


def test_changing_an_argument_in_place_is_named():
    source = SPRING.given + SPRING.solution.replace("adj_s = r", "adj_f0 *= 2\n    adj_s = r")
    with pytest.raises(StudyError, match="changes its argument `adj_f0` in place"):
        answers_of(SPRING, source.encode(), "mine.py")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("while True:\n    pass", "mine.py has not ended after 2 s"),
        ("import os\nos._exit(3)", "mine.py ended Python with exit code 3"),
        (ANSWERING.format("[[[["), "mine.py wrote over its answers: they cannot be read"),
        (ANSWERING.format("3"), "mine.py wrote over its answers: they cannot be read"),
        (ANSWERING.format('{"returned": 5}'), "mine.py wrote over its answers: they cannot"),
        (
            ANSWERING.format('{"returned": [], "values": []}'),
            "mine.py wrote over its answers: they are not those of the exercise",
        ),
        ("1 +", "mine.py does not parse: line 1"),
        (
            "import numpy as np\na = [np.zeros(10**8) for _ in range(8)]",
            "mine.py, line 2 needs more than 1 GiB of memory",
        ),
        ("while True:\n    print('x' * 1000)", "mine.py, line 2 prints or writes more than 10 MB"),
        (
            "open('big', 'w').write('x' * 2 * 10**7)",
            "mine.py, line 1 prints or writes more than 10 MB",
        ),
    ],
)
def test_a_file_runs_in_a_process_with_limits(monkeypatch, tmp_path, source, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(StudyError, match=message):
        run_student(SPRING, path, time_limit=2.0)


def test_only_the_beginning_of_what_is_printed_is_shown(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("print('begin', 'x' * 10**6)\n" + SPRING.given + SPRING.solution)
    run_student(SPRING, path)
    out = capsys.readouterr().out
    assert out.startswith("begin xxx")
    assert len(out) < 5000
    assert out.endswith("... and 996007 bytes more\n")


def test_answers_of_a_process_are_those_of_this_one(tmp_path):
    source = SPRING.given + SPRING.solution
    path = tmp_path / "mine.py"
    path.write_text(source)
    here, there = answers_of(SPRING, source.encode(), "mine.py"), run_student(SPRING, path)
    for a, b in zip(here.returned, there.returned, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
    assert [sorted(values) for values in here.values] == [sorted(values) for values in there.values]


@pytest.fixture
def adjsim(monkeypatch, tmp_path):
    """The command for exercises, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Command("exercise")


def test_the_command_lists_writes_and_grades(adjsim, tmp_path):
    assert re.search(r"\n 30  One frame of a rasterizer +chapter 2\n", adjsim()[1])
    assert adjsim.done("1").endswith("then: adjsim exercise 1 --check\n")
    path = tmp_path / "exercise_01_product.py"
    text = path.read_text()
    err = adjsim.refused("1", "--check")
    assert "the gap is still there: replace this line by `return adj_a, adj_b`" in err
    path.write_text(re.sub("raise Not.*", "return a * adj_y, a * adj_y", text))
    code, out, _ = adjsim("1", "--check")
    assert code == 1
    assert "1 of 2 cotangents are right" in out
    path.write_text(re.sub("raise Not.*", "return b * adj_y, a * adj_y", text))
    out = adjsim.done("1", "--check")
    assert "right, at 4 random points" in out
    assert out.endswith("Next: adjsim exercise 2\n")
    assert "is there already" in adjsim.refused("1")


def test_a_full_disk_leaves_no_exercise_and_names_the_file(adjsim, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    err = adjsim.refused("1")
    assert "exercise_01_product.py cannot be written: No space left on device. Make room" in err
    assert list(tmp_path.iterdir()) == []


def test_a_class_is_graded_into_a_table(adjsim, tmp_path):
    work = {
        "ada/exercise_09_spring.py": SPRING.given + SPRING.solution,
        "ada/exercise_99_none.py": "",
        "ben/exercise_09_spring.py": SPRING.given + SPRING.mutated(SPRING.mistakes[0]),
        "cy/exercise_9_spring (1).py": "print('=1+1')\n1 +",
        "=dora_exercise_01_product.py": exercises()[1].given + exercises()[1].solution,
        "eve/exercise_01_product.py": ANSWERING.format("3"),
        "notes.py": "raise ValueError",
    }
    for name, text in work.items():
        path = tmp_path / "class" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = adjsim.done("--grade", "class")
    first, *rows = csv.reader(out.splitlines())
    assert first == ["student", "exercise", "result", "right", "of", "what", "file"]
    assert rows == [
        ["'=dora", "1", "right", "2", "2", "", "'=dora_exercise_01_product.py"],
        ["ada", "9", "right", "4", "4", "", "ada/exercise_09_spring.py"],
        ["ada", "99", "does not run", "0", "", "There are exercises 1 to 34, got 99.",
         "ada/exercise_99_none.py"],
        ["ben", "9", "wrong", "3", "4", "(3) sign", "ben/exercise_09_spring.py"],
        ["cy", "9", "does not run", "0", "4",
         "exercise_9_spring (1).py does not parse: line 2: invalid syntax.",
         "cy/exercise_9_spring (1).py"],
        ["eve", "1", "does not run", "0", "2",
         "exercise_01_product.py wrote over its answers: they cannot be read.",
         "eve/exercise_01_product.py"],
    ]  # fmt: skip
    assert adjsim("1", "--grade", "class")[1].count("\n") == 3
    assert "none must have files exercise_NUMBER_NAME.py" in adjsim.refused("--grade", "none")


def test_a_file_may_have_another_name(adjsim):
    assert "adjsim exercise 2 --check 'my file.py'" in adjsim("2", "my file.py")[1]
    assert "my file.py, line" in adjsim("2", "my file.py", "--check")[2]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["99"], "There are exercises 1 to 34, got 99"),
        (["3", "--check"], "There is no file exercise_03_division.py. Write it: adjsim exercise 3"),
    ],
)
def test_a_users_mistake_is_one_message(adjsim, args, message):
    assert message in adjsim.refused(*args)
