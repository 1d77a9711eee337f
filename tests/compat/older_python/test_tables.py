"""What pandas had, in a program that `flowstone run` runs. What is expected is what pandas 0.24 printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from installed_programs import run_as_program

START = """
import io
import numpy as np, pandas as pd
CSV = "name,age,city,pay\\nann,30,x,1.5\\nbob,,y,2.5\\ncid,50,x,\\n"
d = pd.read_csv(io.StringIO(CSV), error_bad_lines=False)
"""


def printed(program: str, folder: Path) -> list[str]:
    pytest.importorskip("pandas")
    result = run_as_program(START + program, folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_elements(tmp_path: Path) -> None:
    assert printed(
        """
print(d.as_matrix(["age", "pay"]).tolist())
print(d.ix[0, "name"], d.ix[1:2, ["age"]].values.tolist(), d.ix[:, 1].tolist()[0])
print(d.ix[d.age > 20, "pay"].tolist())
e = d.set_index("name")
print(e.ix["ann", "age"], e.ix[0, "pay"], e.ix[0].tolist())
print(e.ix["ann":"bob", 0].tolist(), e.ix[[0, 2]].city.tolist())
d.ix[1, "age"] = 40.0
print(d.age.tolist(), d.get_value(0, "name"), d.set_value(0, "pay", 9.0).pay[0])
print(d.lookup([0, 1], ["name", "age"]).tolist(), d.lookup([0, 1], ["age", "pay"]))
values = d.age.values
values[0] = 7
print(values.tolist(), d[["name"]].values.dtype, d.name.dtype == object)
""",
        tmp_path,
    ) == [
        "[[30.0, 1.5], [nan, 2.5], [50.0, nan]]",
        "ann [[nan], [50.0]] 30.0",
        "[1.5, nan]",
        "30.0 1.5 [30.0, 'x', 1.5]",
        "[30.0, nan] ['x', 'x']",
        "[30.0, 40.0, 50.0] ann 9.0",
        "['ann', 40.0] [30.   2.5]",
        "[7.0, 40.0, 50.0] object True",
    ]


def test_tables(tmp_path: Path) -> None:
    assert printed(
        """
more = d.append({"name": "z", "age": 1, "city": "q", "pay": 2.0}, ignore_index=True)
print(more.values.tolist()[-1], len(d.append([d, d])), d.age.append(d.pay).tolist())
print([k for k, _ in d.iteritems()])
dummies = pd.get_dummies(d.city).values
print(dummies.tolist(), dummies.dtype)
print(d.drop("name", 1).columns.tolist(), d.fillna(method="ffill").pay.tolist())
print(d.mean().tolist(), d.groupby("city").mean().values.tolist(), d.corr().shape)
print(d.age.mad(), d[["age"]].mad().tolist())
print(pd.read_csv(io.StringIO("a\\n1\\n2"), squeeze=True).tolist())
print(d.to_csv(line_terminator="|", index=False)[:20])
print(pd.concat([d.age, d.pay], axis=1, join_axes=[d.index]).shape, pd.np.pi > 3)
print(d.applymap(str).values[0].tolist())
print(d.sort("pay").name.tolist(), d.pay.order().tolist())
print(pd.rolling_mean(d.pay, 2).tolist(), pd.Int64Index([1]).tolist())
""",
        tmp_path,
    ) == [
        "['z', 1.0, 'q', 2.0] 9 [30.0, nan, 50.0, 1.5, 2.5, nan]",
        "['name', 'age', 'city', 'pay']",
        "[[1, 0], [0, 1], [1, 0]] uint8",
        "['age', 'city', 'pay'] [1.5, 2.5, 2.5]",
        "[40.0, 2.0] [[40.0, 1.5], [nan, 2.5]] (2, 2)",
        "10.0 [10.0]",
        "[1, 2]",
        "name,age,city,pay|an",
        "(3, 2) True",
        "['ann', '30.0', 'x', '1.5']",
        "['ann', 'bob', 'cid'] [1.5, 2.5, nan]",
        "[nan, 2.0, nan] [1]",
    ]
