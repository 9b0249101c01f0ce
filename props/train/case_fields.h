#pragma once

#include "props/train/case_spec.h"

namespace zeroproof::train {

// `field(name, value, simple)` for every number of the object, in a fixed order; `simple` is what
// shrinking tries first, and what JSON leaves out.
template <class Field>
void visit_fields(LayerSpec& spec, Field field) {
  field("inputs", spec.inputs, 1);
  field("outputs", spec.outputs, 2);
  field("has_bias", spec.has_bias, 0);
  field("is_frozen", spec.is_frozen, 0);
  field("is_linked", spec.is_linked, 0);
  field("is_weight_frozen", spec.is_weight_frozen, 0);
  field("is_raw", spec.is_raw, 0);
  field("is_closed", spec.is_closed, 0);
  field("has_two_inputs", spec.has_two_inputs, 0);
  field("dimensions", spec.dimensions, 0);
  field("is_watched", spec.is_watched, 0);
  field("has_twin", spec.has_twin, 0);
  field("shape", spec.shape, 0);
}

template <class Field>
void visit_fields(CallSpec& spec, Field field) {
  field("layer", spec.layer, 0);
  field("wrap", spec.wrap, 0);
  field("is_joined", spec.is_joined, 0);
}

template <class Field>
void visit_fields(MicroSpec& spec, Field field) {
  field("losses", spec.losses, 0);
  field("outstanding", spec.outstanding, 0);
  field("repeats", spec.repeats, 0);
  field("block", spec.block, 0);
  field("idle_forward", spec.idle_forward, 0);
  field("aborts", spec.aborts, 0);
  field("is_undivided", spec.is_undivided, 0);
  field("has_bypass", spec.has_bypass, 0);
  field("skips", spec.skips, 0);
  field("overflow", spec.overflow, 0);
  field("overflow_rank", spec.overflow_rank, 0);
  field("gathers", spec.gathers, 0);
  field("aborts_managed", spec.aborts_managed, 0);
  field("is_uncleared", spec.is_uncleared, 0);
  field("rehooks", spec.rehooks, 0);
  field("throws", spec.throws, 0);
  field("is_broken", spec.is_broken, 0);
  field("restores", spec.restores, 0);
  field("clears", spec.clears, 0);
  field("peeks", spec.peeks, 0);
  field("misuse", spec.misuse, 0);
  field("past_engine", spec.past_engine, 0);
  field("abandons", spec.abandons, 0);
  field("guards", spec.guards, 0);
  field("looks", spec.looks, 0);
  field("keeps", spec.keeps, 0);
  field("interrupt", spec.interrupt, 0);
  field("interrupt_at", spec.interrupt_at, 0);
  field("throws_no_grad", spec.throws_no_grad, 0);
  field("registers", spec.registers, 0);
  field("unread", spec.unread, 0);
  field("asks", spec.asks, 0);
  field("rescales", spec.rescales, 0);
  field("skips_on", spec.skips_on, 0);
  field("wrapped", spec.wrapped, 0);
  field("autocasts", spec.autocasts, 0);
  field("blind", spec.blind, 0);
  field("creates", spec.creates, 0);
  field("lost_overflow", spec.lost_overflow, 0);
  field("renews", spec.renews, 0);
  field("aborts_on_loss", spec.aborts_on_loss, 0);
  field("by_hand", spec.by_hand, 0);
  field("damages", spec.damages, 0);
  field("misscales", spec.misscales, 0);
  field("idles_first", spec.idles_first, 0);
  field("unread_on", spec.unread_on, 0);
  field("outdates", spec.outdates, 0);
  field("aborts_inside", spec.aborts_inside, 0);
  field("litters", spec.litters, 0);
  field("spans", spec.spans, 0);
  field("drops_on", spec.drops_on, 0);
  field("branches", spec.branches, 0);
  field("detour", spec.detour, 0);
  field("detour_at", spec.detour_at, 0);
  field("shortage", spec.shortage, 0);
  field("shortage_at", spec.shortage_at, 0);
  field("guests", spec.guests, 0);
  field("aborts_at_weight", spec.aborts_at_weight, 0);
  field("again", spec.again, 0);
  field("overflow_kind", spec.overflow_kind, 0);
  field("freezes", spec.freezes, 0);
  field("keeps_dimension", spec.keeps_dimension, 0);
  field("rests", spec.rests, 0);
}

// What every training has: ranks, calls of engines, their buckets, precision and prefetching.
template <class Field>
void visit_plain_fields(CaseSpec& spec, Field& field) {
  field("ranks", spec.ranks, 1);
  field("stage", spec.stage, 0);
  field("precision", spec.precision, 0);
  field("engines", spec.engines, 1);
  field("is_manual", spec.is_manual, 0);
  field("preempts", spec.preempts, 0);
  field("accumulation", spec.accumulation, 1);
  field("is_unmanaged", spec.is_unmanaged, 0);
  field("heads", spec.heads, 1);
  field("container", spec.container, 0);
  field("is_tiled", spec.is_tiled, 0);
  field("tile_wrap", spec.tile_wrap, 0);
  field("input_grad", spec.input_grad, 0);
  field("bucket", spec.bucket, CaseSpec::kManyElements);
  field("is_scattered", spec.is_scattered, 0);
  field("reduces_whole", spec.reduces_whole, 0);
  field("reduces_to_owners", spec.reduces_to_owners, 0);
  field("has_overlap", spec.has_overlap, 0);
  field("is_offloaded", spec.is_offloaded, 0);
  field("clip", spec.clip, 0);
  field("is_dynamic", spec.is_dynamic, 0);
  field("is_wire_float32", spec.is_wire_float32, 0);
  field("accumulates_float32", spec.accumulates_float32, 0);
  field("predivides", spec.predivides, 0);
  field("prescales", spec.prescales, 0);
  field("is_sum", spec.is_sum, 0);
  field("is_sgd", spec.is_sgd, 0);
  field("persistence", spec.persistence, 0);
  field("prefetch", spec.prefetch, 0);
  field("reuse", spec.reuse, 0);
  field("sub_group", spec.sub_group, CaseSpec::kManyElements);
  field("plain_linear", spec.plain_linear, 0);
}

// What few have.
template <class Field>
void visit_special_fields(CaseSpec& spec, Field& field) {
  field("experts", spec.experts, 0);
  field("reads", spec.reads, 0);
  field("skips_frames", spec.skips_frames, 0);
  field("groups", spec.groups, 1);
  field("rule", spec.rule, 0);
  field("scaling", spec.scaling, 0);
  field("sets_boundary", spec.sets_boundary, 0);
  field("owns_scale", spec.owns_scale, 0);
  field("has_ranks_apart", spec.has_ranks_apart, 0);
  field("is_unchecked", spec.is_unchecked, 0);
  field("gather_bucket", spec.gather_bucket, CaseSpec::kGatherBucket);
  field("checks", spec.checks, 0);
  field("persistence_all", spec.persistence_all, CaseSpec::kManyElements);
  field("live", spec.live, CaseSpec::kManyElements);
  field("granularity", spec.granularity, 0);
  field("leaf_by", spec.leaf_by, 0);
  field("reads_late", spec.reads_late, 0);
  field("registers", spec.registers, 0);
  field("returns", spec.returns, 0);
  field("is_unsafe", spec.is_unsafe, 0);
  field("needs_all", spec.needs_all, 0);
  field("is_strict", spec.is_strict, 0);
  field("is_lifted", spec.is_lifted, 0);
  field("scales_by_one", spec.scales_by_one, 0);
  field("is_wide", spec.is_wide, 0);
  field("offloads_params", spec.offloads_params, 0);
  field("masters", spec.masters, 0);
  field("has_grad_scaler", spec.has_grad_scaler, 0);
  field("holds", spec.holds, 0);
  field("is_wire_narrow", spec.is_wire_narrow, 0);
  field("has_floor", spec.has_floor, 0);
  field("counts_nothing", spec.counts_nothing, 0);
  field("is_read", spec.is_read, 0);
  field("refuses", spec.refuses, 0);
  field("accepts", spec.accepts, 0);
  field("watches", spec.watches, 0);
  field("lists_frozen", spec.lists_frozen, 0);
  field("takes_turns", spec.takes_turns, 0);
  field("reorders", spec.reorders, 0);
  field("first_ranks", spec.first_ranks, 0);
  field("tensor", spec.tensor, 1);
  field("sequence", spec.sequence, 1);
  field("scales_second", spec.scales_second, 0);
  field("brims", spec.brims, 0);
  field("grown", spec.grown, 0);
  field("packs", spec.packs, 0);
  field("owns", spec.owns, 0);
  field("first_stage", spec.first_stage, -1);
}

template <class Field>
void visit_fields(CaseSpec& spec, Field field) {
  visit_plain_fields(spec, field);
  visit_special_fields(spec, field);
}

}  // namespace zeroproof::train
