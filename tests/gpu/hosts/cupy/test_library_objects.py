"""Objects of NumPy and SciPy in CuPy scripts: sparse matrices, polynomials, interpolators, FFT backends."""

from __future__ import annotations


def test_sparse_matrices_exchange_device_arrays(script):
    """Results are SciPy's; a kernel works on the matrix's own arrays."""
    ended = script(
        '''
import scipy.sparse as host
from cupyx.scipy import sparse
from cupyx.scipy.sparse import csr_matrix, linalg
data, row, col = cp.array([1.0, 2, 3, 4], cp.float32), cp.array([0, 0, 1, 2]), cp.array([0, 2, 1, 0])
a = sparse.coo_matrix((data, (row, col)), shape=(3, 3)).tocsr()
same = host.coo_matrix((data.get(), (row.get(), col.get())), shape=(3, 3)).tocsr()
x = cp.arange(3, dtype=cp.float32)
assert isinstance(a, csr_matrix) and isinstance(a, sparse.spmatrix) and sparse.isspmatrix_csr(a) and a.nnz == 4
for found, expected in ((a @ x, same @ x.get()), (x @ a, x.get() @ same), (a.sum(axis=0), same.sum(axis=0)),
                        ((a + 2 * a.T).toarray(), (same + 2 * same.T).toarray()), (a.diagonal(), same.diagonal())):
    assert type(found) is cp.ndarray and (found.get() == expected).all(), (found, expected)
assert type(a.get()) is host.csr_matrix and (a.get() != same).nnz == 0
solved = linalg.spsolve(a + sparse.identity(3, dtype=cp.float32, format="csr"), x)
cp.testing.assert_allclose(solved + a @ solved, x, rtol=1e-5)
operator = linalg.LinearOperator((3, 3), matvec=lambda v: v / cp.array([1.0, 2, 4]), dtype=float)
cp.testing.assert_allclose(linalg.cg(operator, cp.ones(3), rtol=1e-9)[0], cp.array([1.0, 2, 4]))
scale = cp.RawKernel("""extern "C" __global__ void scale(const int *end, float *values) {
    if (threadIdx.x < end[3]) values[threadIdx.x] *= 10;
}""", "scale")
address = a.data.data.ptr
scale((1,), (32,), (a.indptr, a.data))
assert a.data.data.ptr == address and (a.toarray().get() == 10 * same.toarray()).all()
try:
    a @ np.ones(3)
except TypeError as error:
    print(error)
'''
    )
    assert ended.code == 0, ended.stderr
    assert ended.stdout == "Unsupported type <class 'numpy.ndarray'>\n"
    assert "coo_matrix" in ended.stderr.partition("NumPy and SciPy computed")[2]


def test_polynomials_interpolators_trees_and_callbacks(script):
    ended = script(
        """
import copy, pickle
from cupyx.scipy import interpolate, spatial
p = cp.poly1d([1, -3, 2])
assert isinstance(p, cp.poly1d) and p(4) == 6 and p(cp.arange(3)).tolist() == [2, 0, 0]
assert sorted(p.roots.tolist()) == [1, 2] and (p * p).order == 4 and type(p.coeffs) is cp.ndarray
assert copy.deepcopy(p) == p == pickle.loads(pickle.dumps(p)) and p.get() == np.poly1d([1, -3, 2])
grid = interpolate.RegularGridInterpolator((cp.arange(3.0), cp.arange(3.0)), cp.arange(9.0).reshape(3, 3))
value = grid(cp.array([[0.5, 1.5]]))
assert type(value) is cp.ndarray and value.tolist() == [3]
distances, indices = spatial.KDTree(cp.array([[0.0, 0], [3, 4]])).query(cp.array([[3.0, 3]]))
assert (distances.tolist(), indices.tolist()) == ([1], [1]) and type(indices) is cp.ndarray
assert cp.apply_along_axis(cp.sum, 1, cp.ones((2, 3))).tolist() == [3, 3]
types = []
cp.apply_along_axis(lambda row: types.append(type(row)) or row.max(), 0, cp.ones((2, 1)))
assert types[0] is cp.ndarray
"""
    )
    assert ended.code == 0, ended.stderr


def test_scipy_fft_uses_cupy_as_backend(script):
    """With CuPy as the global backend too, which leaves SciPy no other one."""
    ended = script(
        """
import scipy.fft
import cupyx.scipy.fft
x = cp.arange(8.0)
expected = np.fft.fft(x.get())
with cupyx.scipy.fft.get_fft_plan(x):
    assert cp.allclose(cp.fft.fft(x), cp.asarray(expected))
with scipy.fft.set_backend(cupyx.scipy.fft):
    found = scipy.fft.fft(x)
assert type(found) is cp.ndarray and np.allclose(found.get(), expected)
scipy.fft.set_global_backend(cupyx.scipy.fft)
plan = cupyx.scipy.fft.get_fft_plan(x)
assert np.allclose(scipy.fft.fft(x).get(), expected) and np.allclose(cupyx.scipy.fft.fft(x, plan=plan).get(), expected)
assert cp.fft.config.get_plan_cache().get_curr_size() == 0
"""
    )
    assert ended.code == 0, ended.stderr


def test_functions_of_cublas(script):
    ended = script(
        """
from cupy import cublas
x, y = cp.array([1, -3, 2], cp.float32), cp.array([4, 5, 6], cp.float32)
found = [cublas.dot(x, y), cublas.nrm2(cp.array([3.0, 4.0])), cublas.asum(x), cublas.iamax(x), cublas.iamin(x)]
assert [float(each) for each in found] == [1, 5, 6, 2, 1]
z = cp.array([3 + 4j, 6 + 0j])
assert complex(cublas.dotc(z, z)) == 61 and complex(cublas.dotu(z, z)) == (3 + 4j) ** 2 + 36 and cublas.iamax(z) == 1
out = cp.zeros((), cp.float32)
assert cublas.dot(x, y, out=out) is out and out == 1
assert cublas.axpy(2, x, y) is None and y.tolist() == [6, -1, 10]
cublas.scal(0.5, y)
assert y.tolist() == [3, -0.5, 5] and y.dtype == cp.float32
a = cp.arange(6, dtype=cp.float64).reshape(2, 3)
v = cp.ones(3)
cublas.gemv("T", 2.0, a, cp.array([1.0, 10.0]), 3.0, v)
assert v.tolist() == [63, 85, 107]
cublas.ger(1.0, cp.array([1.0, 2.0]), cp.array([1.0, 0.0, 1.0]), a)
assert a.tolist() == [[1, 1, 3], [5, 4, 7]]
assert cublas.gemm("N", "T", a, a).tolist() == [[11, 30], [30, 90]]
c = cp.ones((2, 2))
assert cublas.gemm("N", "H", a, a, out=c, alpha=1, beta=-1) is c and c.tolist() == [[10, 29], [29, 89]]
assert cublas.geam("N", "T", 1, c, 2, c).tolist() == [[30, 87], [87, 267]]
assert cublas.dgmm("L", a, cp.array([2.0, 1.0])).tolist() == [[2, 2, 6], [5, 4, 7]]
assert cublas.dgmm("R", a, cp.array([2.0, 1.0, 0.0])).tolist() == [[2, 1, 0], [10, 4, 0]]
"""
    )
    assert ended.code == 0, ended.stderr
    assert "cublas.axpy" in ended.stderr
