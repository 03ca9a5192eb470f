"""`cupy.testing`: a test module that uses its decorators, as projects outside CuPy do."""

from __future__ import annotations

import textwrap

_TESTS = """
    import unittest
    import cupy, numpy, pytest
    from cupy import testing

    SEEN = []

    @testing.parameterize(*testing.product({"shape": [(2,), (3,)], "dtype": ["f", "d"]}))
    class TestFunctions:
        def test_shape(self):
            SEEN.append((self.shape, self.dtype))
            assert testing.shaped_arange(self.shape, cupy, self.dtype).shape == self.shape

    @testing.parameterize({"n": 1}, {"n": 2})
    class TestCases(unittest.TestCase):
        def test_n(self):
            SEEN.append(self.n)

    class TestDecorators:
        @testing.for_all_dtypes(no_bool=True)
        @testing.numpy_cupy_allclose(rtol={numpy.float16: 1e-2, "default": 1e-6})
        def test_sum(self, xp, dtype):
            SEEN.append((xp is cupy, dtype))
            return testing.shaped_random((2, 3), xp, dtype).sum(axis=0)

        @testing.for_dtypes(["i", "f"])
        @testing.numpy_cupy_array_equal()
        def test_differs(self, xp, dtype):
            return xp.zeros(3, dtype) + (xp is cupy)

        @testing.numpy_cupy_raises(accept_error=ValueError)
        def test_raises(self, xp):
            return xp.zeros(3).reshape(2)

        @testing.for_CF_orders()
        def test_order(self, order):
            SEEN.append(order)

        @testing.multi_gpu(2)
        def test_devices(self):
            raise AssertionError

    def test_seen():
        assert {((2,), "f"), ((3,), "d"), 1, 2, "C", (True, numpy.int8), (False, numpy.complex128)} <= set(SEEN)
        assert (True, numpy.bool_) not in SEEN
"""


def test_decorators_run_and_compare_tests(script, tmp_path):
    (tmp_path / "test_project.py").write_text(textwrap.dedent(_TESTS))
    ended = script(
        """
import pytest
print(int(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "test_project.py"])))
"""
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout.endswith("1\n")
    assert "1 failed, 10 passed, 1 skipped" in ended.stdout, ended.stdout
    assert "TestDecorators::test_differs" in ended.stdout
    assert "with dtype = <class 'numpy.int32'>" in ended.stdout
