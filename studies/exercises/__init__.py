"""Exercises that grade themselves: `adjsim exercise 3` writes one, `--check` grades it.

Each file of `tasks/` is one exercise: what the student gets, the solution, random inputs, and the
classic mistakes as replacements in the solution. A new exercise is one more such file.

- `catalogue.py` reads these files and makes the student's file.
- `derived.py` finds mistakes that a solution invites: terms dropped, lines in the wrong order.
- `answers.py` calls a student's function and says what is wrong with it.
- `student.py` does so in a process of its own, with limits of time and memory.
- `grading.py` compares the numbers with those of the solution, with differences of the forward
  function, and with those of each mistake.
- `command.py` is what `adjsim exercise` does, for one file or for those of a class.
- `browser.py` is what the manual's page of exercises does. It and what it imports need NumPy alone.
"""
