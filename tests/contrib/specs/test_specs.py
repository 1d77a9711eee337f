"""`tf.contrib.specs`: names, variables and texts, which TensorFlow 1.4.1 gave for the same specs."""

import numpy as np
import pytest

import flowstone as tf

specs = tf.contrib.specs

# Each spec with the name and shape of its result for images of shape [2, 8, 8, 3], and its variables.
NETS = {
    "net = Cr(4, [3, 3])": ("Conv/Relu", [2, 8, 8, 4], {"Conv/weights": [3, 3, 3, 4], "Conv/biases": [4]}),
    "net = Fs(3) | Fl(4)": (
        "fully_connected_1/BiasAdd",
        [2, 8, 8, 4],
        {
            "fully_connected/weights": [3, 3],
            "fully_connected/biases": [3],
            "fully_connected_1/weights": [3, 4],
            "fully_connected_1/biases": [4],
        },
    ),
    "net = Cr(2, [1, 1]) ** 2": (
        "Conv_1/Relu",
        [2, 8, 8, 2],
        {
            "Conv/weights": [1, 1, 3, 2],
            "Conv/biases": [2],
            "Conv_1/weights": [1, 1, 2, 2],
            "Conv_1/biases": [2],
        },
    ),
    "net = Lstm2to1(3) | Ssm(4)": (
        "SequenceSoftmax/packed",
        [2, 8, 4],
        {
            "ReduceToSequence/SequenceToFinal/basic_lstm_cell/kernel": [6, 12],
            "ReduceToSequence/SequenceToFinal/basic_lstm_cell/bias": [12],
            "SequenceSoftmax/weights": [3, 4],
            "SequenceSoftmax/biases": [4],
        },
    ),
    "n = 4; net = Dws(n)": (
        "Conv/Sigmoid",
        [2, 8, 8, 4],
        {"Conv/weights": [1, 1, 3, 4], "Conv/biases": [4]},
    ),
    "net = Conc(3, Dwm(2), Id)": ("concat", [2, 8, 8, 5], {"Conv/weights": [1, 1, 3, 2], "Conv/biases": [2]}),
    "net = Relu + Tanh": ("add", [2, 8, 8, 3], {}),
    "net = Relu * Sig": ("mul", [2, 8, 8, 3], {}),
    "net = Idx()": ("x", [2, 8, 8, 3], {}),
    "net = Id ** 0": ("x", [2, 8, 8, 3], {}),
    "net = Fun(lambda x: x + 1.0)": ("add", [2, 8, 8, 3], {}),
    "net = Expand(0) | Squeeze": ("Squeeze", [2, 8, 8, 3], {}),
    "net = Transpose([0, 3, 1, 2])": ("transpose", [2, 3, 8, 8], {}),
    "net = Reshape([-1])": ("Reshape", [384], {}),
    "net = Print([1])": ("Print", [2, 8, 8, 3], {}),
    'net = Import("import operator; f = operator.neg")': ("Neg", [2, 8, 8, 3], {}),
    'net = Id * Var("v", shape=[3])': ("mul", [2, 8, 8, 3], {"v": [3]}),
}
SHAPES = {
    "net = Do(0.5)": [2, 8, 8, 3],
    "net = Mp([2, 2]) | Ap([2, 2])": [2, 2, 2, 3],
    "net = Cx(2, 3) | Cs(2, 3) | Ct(2, 3) | Cm(2, 3) | Cl(2, 3) | Lrn": [2, 8, 8, 2],
    "net = Flat | Fx(3) | Fr(3) | Ft(3) | Fm(5) | Smax": [2, 5],
    "net = Bn | Unit(3)": [2, 8, 8, 3],
    "net = Clstm2(4, 5)": [2, 8, 8, 5],
    "net = Lstm2(4)": [2, 8, 8, 4],
    "net = Lstm2to0(4)": [2, 4],
    "net = Lstm2to1(3) | Lstm1(4) | Lstm1to0(5)": [8, 5],
}


@pytest.fixture
def images():
    with tf.Graph().as_default():
        yield tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")


@pytest.mark.parametrize("spec", NETS)
def test_a_net_has_tensorflows_names_and_variables(spec, images):
    name, shape, variables = NETS[spec]
    result = specs.create_net(spec, images)
    assert (result.op.name, result.shape.as_list()) == (name, shape)
    assert {each.op.name: each.shape.as_list() for each in tf.global_variables()} == variables


@pytest.mark.parametrize("spec", SHAPES)
def test_a_net_has_the_shape_of_its_layers(spec, images):
    assert specs.create_net_fun(spec)(images).shape.as_list() == SHAPES[spec]


def test_a_shared_function_has_its_variables_once(images):
    assert specs.Shared.shared_number > 0
    shared = specs.Shared(specs.Cr(3, [1, 1]), name="one")
    assert (shared | shared).funcall(images).op.name == "one_1/Conv/Relu"
    assert [each.op.name for each in tf.global_variables()] == ["one/Conv/weights", "one/Conv/biases"]
    with pytest.raises(ValueError):
        specs.Shared(specs.Id, scope="name")
    with pytest.raises(ValueError):
        specs.Shared(specs.Id, name=3)


WRONG = {
    "y = 3": ValueError,
    "import os; net = Id": ValueError,
    "net = absent": NameError,
    "net = Relu - Tanh": TypeError,
    "for = 3": SyntaxError,
    "net = 3": AttributeError,
    "net = Cr": TypeError,
    'net = Import("import math")': ValueError,
    'net = Fun("identity")': ValueError,
}


@pytest.mark.parametrize("spec", WRONG)
def test_wrong_specs(spec, images):
    with pytest.raises(WRONG[spec]):
        specs.create_net(spec, images)


def test_names_of_the_environment_are_found(images):
    environment = {"n": 7}
    assert specs.create_net("net = Cr(n, [1, 1])", images, environment).shape.as_list() == [2, 8, 8, 7]
    assert sorted(environment) == ["n", "net"]
    assert sorted(specs.eval_spec("_x = 3; net = Id")) == ["_x", "net"]
    assert specs.eval_params("b = a + log10(100)", {"a": 3}) == {"a": 3, "b": 5.0}


def test_keywords_within_strings_are_no_keywords():
    assert specs.check_keywords("x = 'import'; y = \"def\"; imports = 3") is None
    for spec in ("import os", "while 1: pass", "def f(): pass", 'exec("a")'):
        with pytest.raises(ValueError):
            specs.check_keywords(spec)


@pytest.mark.parametrize(
    ("arguments", "positional"),
    [
        (((1, 2), {"_0": 5}), ([1, 2], {})),
        (((1, 2), {"_0": 5}, True), ([5, 2], {})),
        (((1, 2), {"_4": 5}), ([1, 2, None, None, 5], {})),
        (((1,), {"_1": 5, "_2": 6, "a": 3}), ([1, 5, 6], {"a": 3})),
        (((1, None), {"_1": 3}), ([1, 3], {})),
    ],
)
def test_numbered_keywords_are_positional(arguments, positional):
    assert specs.get_positional(*arguments) == positional


def test_functions_of_anything(capsys):
    double = specs.Callable(lambda x: 2 * x)
    assert specs.Composition(double, double).funcall(3) == 12
    assert specs.Operator(max, double, specs.Idx()).funcall(-1) == -1
    assert specs.Function(pow, 2)(_2=5).funcall(3) == 4
    assert specs.External("math", "hypot")(4).funcall(3) == 5.0
    assert isinstance(double, specs.Composable)
    specs.debug(True)
    assert specs.specs_lib.debug_
    specs.Fun(abs).funcall(-3)
    specs.debug(False)
    assert "abs" in capsys.readouterr().out
    assert not specs.debug_


def test_short_names_are_local():
    assert "Clstm2" not in globals()
    with specs.specs.ops:
        assert Clstm2 is specs.Clstm2  # noqa: F821
    with specs.LocalImport({"specs": 3, "absent": 4}):
        assert (specs, absent) == (3, 4)  # noqa: F821
    assert specs is tf.contrib.specs
    assert "absent" not in globals()


def test_parameters_are_drawn_within_their_bounds():
    for _ in range(50):
        assert 1.0 <= specs.Uf(1.0, 2.0) <= 2.0
        assert 1.0 <= specs.Lf(1.0, 100.0) <= 100.0
        assert specs.Ui(3, 5) in (3, 4, 5)
        assert specs.Li(3, 5) in (3, 4, 5)
        assert -1.0 <= specs.Nt(0.0, 10.0, limit=0.1) <= 1.0
    np.testing.assert_allclose([specs.e, specs.pi, specs.tau], [2.718282, 3.141593, 6.283185], rtol=1e-6)
    assert specs.inf > 0 and specs.nan != specs.nan


def test_a_summary_counts_parameters(capsys):
    with tf.Graph().as_default():
        specs.tf_spec_summary("net = Cr(64, [5, 5]) | Mp([2, 2]) | Flat | Fs(10)", input_shape=(1, 28, 28, 3))
    assert capsys.readouterr().out.splitlines() == [
        "         0 Placeholder          [1, 28, 28, 3]",
        "      4864 Conv                 [1, 28, 28, 64]",
        "         0 MaxPool2D            [1, 14, 14, 64]",
        "         0 Flatten              [1, 12544]",
        "    125450 fully_connected      [1, 10]",
    ]


def test_rows_of_parameters(images):
    y = specs.create_net("net = Cr(4, [3, 3]) | Flat | Fs(3)", images)
    rows = list(specs.tf_parameter_iter(y))
    assert rows[:3] == [
        ("fully_connected/Sigmoid", 0, [2, 3]),
        ("fully_connected/BiasAdd", 3, [2, 3]),
        ("fully_connected/MatMul", 768, [2, 3]),
    ]
    assert [count for _, count, _ in rows] == [0, 3, 768, 0, 0, 4, 108, 0]
    assert specs.tf_num_params(y) == 883
    lines = []
    specs.tf_parameter_summary(y, lines.append, combine=False)
    assert lines[1] == "       108 Conv/Conv2D          [2, 8, 8, 4]"
    left, right = specs.tf_left_split(y.op)
    assert (left.op.name, right) == ("fully_connected/BiasAdd", [])


def test_structures_and_prints(capsys):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        y = tf.matmul(x, x, transpose_b=True)
        assert specs.tf_structure(tf.nn.relu(tf.log(y) * y)) == " _ <> dot log <> mul relu"
        assert specs.tf_structure(tf.identity(y), include_shapes=True) == " [2, 3] _ <> [2, 2] dot [2, 2]"
        finished = set()
        specs.tf_structure(y, finished=finished)
        assert finished == {x.op, y.op}
        specs.tf_print(y * y)
    lines = ["mul_1 Mul [2, 2]", "  MatMul MatMul [2, 2]", "    Placeholder Placeholder [2, 3]"]
    lines += ["    <Placeholder> Placeholder [2, 3]", "  <MatMul> MatMul [2, 2]"]
    assert capsys.readouterr().out.splitlines()[-5:] == lines
    with tf.Graph().as_default():
        assert specs.tf_spec_structure("net = Cr(4, [5, 5]) | Sig", input_shape=[1, 8, 8, 1]) == (
            "_ variablev2 conv variablev2 biasadd relu sig"
        )
        specs.tf_spec_print("net = Relu", tf.zeros([2], name="zero"))
        with pytest.raises(ValueError):
            specs.tf_spec_structure("net = Id")
    assert capsys.readouterr().out.splitlines() == ["Relu Relu [2]", "  zero Const [2]"]
