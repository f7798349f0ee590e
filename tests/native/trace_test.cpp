#include "qkv/trace.hpp"

#include "support/attention_case.hpp"

using namespace qkv;
using namespace qkv::test;

TEST_CASE("every step of the trace is what the step before it gives") {
  const extent length = 19, embed_dim = 12, head_dim = 10, value_dim = 7;
  number_source numbers(1);
  const auto x = numbers.floats(length * embed_dim), wq = numbers.floats(embed_dim * head_dim),
             wk = numbers.floats(embed_dim * head_dim), wv = numbers.floats(embed_dim * value_dim);
  const auto zeros = [](extent count) { return std::vector<float>(count, quiet_nan); };
  auto query = zeros(length * head_dim), key = query, value = zeros(length * value_dim),
       out = value, scores = zeros(length * length), scaled = scores, weights = scores;
  const auto matrix = [](auto& data, extent rows, extent columns) {
    return view<std::remove_reference_t<decltype(data[0])>, 2>::contiguous(data.data(),
                                                                           {rows, columns});
  };
  attention_options options;
  options.scale = default_scale(head_dim);
  options.mask.causal = true;
  thread_pool pool(2);
  scratch memory(trace_workspace_bytes(length, embed_dim, head_dim, value_dim, pool.size()));
  REQUIRE_EQ(trace_forward(matrix(x, length, embed_dim),
                           {matrix(wq, embed_dim, head_dim), matrix(wk, embed_dim, head_dim),
                            matrix(wv, embed_dim, value_dim)},
                           options,
                           {matrix(query, length, head_dim), matrix(key, length, head_dim),
                            matrix(value, length, value_dim), matrix(scores, length, length),
                            matrix(scaled, length, length), matrix(weights, length, length),
                            matrix(out, length, value_dim)},
                           memory, pool),
             status::ok);

  for (const auto& [made, weight, columns] :
       {std::tuple(&query, &wq, head_dim), std::tuple(&key, &wk, head_dim),
        std::tuple(&value, &wv, value_dim)}) {
    check_near(*made, reference::linear<float>(x, *weight, {}, length, embed_dim, columns),
               reference::linear<double>(to_double(x), to_double(*weight), {}, length, embed_dim,
                                         columns));
  }
  for (extent i = 0; i < length; ++i) {
    for (extent j = 0; j < length; ++j) {
      double score = 0;
      for (extent d = 0; d < head_dim; ++d)
        score += static_cast<double>(query[i * head_dim + d]) * key[j * head_dim + d];
      CHECK_EQ(scores[i * length + j], doctest::Approx(score).epsilon(1e-5));
      CHECK_EQ(scaled[i * length + j], scores[i * length + j] * options.scale);
    }
  }
  // The last steps are attention over the first ones, to the bit.
  attention_case same({1, 1, 1, length, length, head_dim, value_dim}, 0);
  same.query = query;
  same.key = key;
  same.value = value;
  same.set_causal(0);
  CHECK_EQ(same.run().weights, weights);
  CHECK_EQ(same.run().out, out);
}
