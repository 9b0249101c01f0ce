#include "props/report/picture/picture_draft.h"

#include <algorithm>

#include "props/report/text.h"

namespace zeroproof {

std::uint32_t PictureDraft::intern(std::string text) {
  const auto [at, is_new] =
      strings_.emplace(std::move(text), static_cast<std::uint32_t>(strings_.size()));
  if (is_new) picture.strings.push_back(at->first);
  return at->second;
}

std::uint32_t PictureDraft::track(std::uint32_t process, PictureTrackKind kind, std::int64_t number,
                                  const std::string& name) {
  const auto [at, is_new] = tracks_.try_emplace({process, kind, number},
                                                static_cast<std::uint32_t>(picture.tracks.size()));
  if (is_new) {
    picture.tracks.push_back({process, kind, visible(name), number, 0});
    is_taken_.emplace_back();
  }
  return at->second;
}

std::uint32_t PictureDraft::free_row(std::uint32_t track) {
  std::vector<bool>& rows = is_taken_[track];
  const auto free = std::find(rows.begin(), rows.end(), false);
  const auto row = static_cast<std::size_t>(free - rows.begin());
  if (free == rows.end()) rows.push_back(false);
  rows[row] = true;
  return static_cast<std::uint32_t>(row);
}

std::uint32_t PictureDraft::add_bar(std::uint32_t begin, std::uint32_t track, std::uint32_t row,
                                    const std::string& label) {
  picture.tracks[track].rows = std::max(picture.tracks[track].rows, row + 1);
  picture.bars.push_back({.begin = begin,
                          .end = begin,
                          .track = track,
                          .row = row,
                          .category = picture.events[begin].category,
                          .label = intern(visible(label))});
  return static_cast<std::uint32_t>(picture.bars.size() - 1);
}

void PictureDraft::end_bar(std::uint32_t bar, std::uint32_t end) {
  PictureBar& ended = picture.bars[bar];
  ended.end = end;
  std::vector<bool>& rows = is_taken_[ended.track];
  if (ended.row < rows.size()) rows[ended.row] = false;
}

void PictureDraft::sort_tracks() {
  std::vector<std::uint32_t> place(picture.tracks.size());
  std::vector<PictureTrack> sorted;
  for (const auto& [key, track] : tracks_) {  // by process, kind, number
    place[track] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(picture.tracks[track]));
  }
  picture.tracks = std::move(sorted);
  for (PictureEvent& event : picture.events) event.track = place[event.track];
  for (PictureBar& bar : picture.bars) bar.track = place[bar.track];
}

}  // namespace zeroproof
