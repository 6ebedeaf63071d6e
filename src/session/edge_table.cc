#include "session/edge_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kiln::session {

void EdgeTable::Reserve(size_t edges) {
  const size_t size = std::bit_ceil(std::max<size_t>(8, 2 * edges + 1));
  if (size <= places_.size()) return;
  const std::vector<Place> old = std::exchange(places_, std::vector<Place>(size));
  shift_ = 64 - std::countr_zero(size);
  for (const Place& place : old) {
    if (place.edge != kNone) places_[PlaceOf(place.from, place.to)] = place;
  }
}

size_t EdgeTable::PlaceOf(int32_t from, int32_t to) const {
  size_t at = Start(from, to);
  while (places_[at].edge != kNone && (places_[at].from != from || places_[at].to != to)) {
    at = Next(at);
  }
  return at;
}

int32_t EdgeTable::Find(int32_t from, int32_t to) const {
  return places_.empty() ? kNone : places_[PlaceOf(from, to)].edge;
}

bool EdgeTable::Insert(int32_t from, int32_t to, int32_t edge) {
  Reserve(count_ + 1);
  Place& place = places_[PlaceOf(from, to)];
  if (place.edge != kNone) return false;
  place = {from, to, edge};
  ++count_;
  return true;
}

int32_t EdgeTable::Erase(int32_t from, int32_t to) {
  if (places_.empty()) return kNone;
  size_t hole = PlaceOf(from, to);
  const int32_t edge = places_[hole].edge;
  if (edge == kNone) return kNone;
  --count_;
  // Later edges move up, where a search for them would end at the hole.
  for (size_t at = Next(hole); places_[at].edge != kNone; at = Next(at)) {
    const size_t start = Start(places_[at].from, places_[at].to);
    const size_t mask = places_.size() - 1;
    if (((at - start) & mask) < ((at - hole) & mask)) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  places_[hole] = {};
  return edge;
}

}  // namespace kiln::session
