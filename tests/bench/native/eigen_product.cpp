// Eigen's own product as WebAssembly, by the flags of our build.
#include <Eigen/Core>
#include <cstddef>
#include <new>

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

extern "C" {

float* reserve(std::size_t count) { return new (std::nothrow) float[count]; }
void release(float* block) { delete[] block; }

// out (rows, out_dim) = x (rows, in_dim) . weight (in_dim, out_dim)
void product(const float* x, const float* weight, float* out, int rows, int in_dim, int out_dim) {
  Eigen::Map<matrix>(out, rows, out_dim).noalias() =
      Eigen::Map<const matrix>(x, rows, in_dim) * Eigen::Map<const matrix>(weight, in_dim, out_dim);
}
}
