#include "attention_plan.hpp"

namespace qkv {

attention_sequence attention_plan::sequence(extent number) const {
  const attention_mask& mask = options_.mask;
  const packed_sequences& packs = options_.sequences;
  if (packed()) {
    return {0,
            packs.query_offsets[number],
            packs.query_offsets[number + 1],
            packs.key_offsets[number],
            packs.key_offsets[number + 1],
            mask.offset_of(number)};
  }
  const extent keys = mask.key_lengths != nullptr ? mask.key_lengths[number] : sizes_.key_len;
  return {number, 0, sizes_.query_len, 0, keys, mask.offset_of(number)};
}

attention_sequence attention_plan::sequence_of(extent batch, extent query) const {
  if (!packed()) return sequence(batch);
  const std::int32_t* offsets = options_.sequences.query_offsets;
  const std::int32_t* after =
      std::upper_bound(offsets, offsets + options_.sequences.count + 1, query);
  return sequence(after - offsets - 1);
}

bool attention_plan::plain() const {
  return !options_.mask.allowed && !options_.bias && options_.alibi_slopes == nullptr &&
         options_.dropout.probability == 0.0f;
}

extent attention_plan::heads_side_by_side() const {
  if (!plain()) return 1;
  const std::array<extent, 4>& strides = inputs_.query.strides;
  extent longest = 0;
  for (extent i = 0; i < sequences(); ++i) longest = std::max(longest, sequence(i).query_len());
  const bool even = !packed() && strides[1] == longest * strides[2];
  return longest == 1 || (even && longest <= kernels::column_panel) ? sizes_.heads_per_kv_head : 1;
}

tile_task attention_plan::task(extent number, extent repeats, extent heads) const {
  const extent tiles = tiles_of(heads);
  const attention_sequence part = sequence(number / tiles / repeats);
  const extent first = number % tiles * query_tile;
  return {part, number / tiles % repeats * heads, first,
          std::min(query_tile, part.query_len() * heads - first)};
}

attention_head attention_plan::head(const attention_sequence& part, extent head) const {
  const extent kv_head = head / sizes_.heads_per_kv_head;
  const extent row = (part.batch * sizes_.num_heads + head) * sizes_.query_len + part.query_begin;
  return {{inputs_.query.at(part.batch, head, part.query_begin),
           inputs_.query.strides[part.query_len() == 1 ? 1 : 2]},
          {inputs_.key.at(part.batch, kv_head, part.key_begin), inputs_.key.strides[2]},
          {inputs_.value.at(part.batch, kv_head, part.key_begin), inputs_.value.strides[2]},
          part.key_len(),
          sizes_.head_dim,
          sizes_.value_dim,
          options_.scale,
          {options_.mask, options_.bias, options_.softcap,
           options_.alibi_slopes != nullptr ? options_.alibi_slopes[head] : 0.0f, part.batch, head,
           part.query_begin, part.key_begin, part.query_len(), part.key_len(), part.query_offset},
          options_.sinks != nullptr ? options_.sinks[head] : kernels::minus_infinity,
          options_.dropout,
          static_cast<std::uint64_t>(row),
          plain()};
}

}  // namespace qkv
