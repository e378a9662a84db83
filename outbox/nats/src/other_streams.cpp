#include "other_streams.hpp"

#include <algorithm>
#include <utility>

namespace stela::nats {

namespace {

constexpr std::chrono::seconds other_streams_interval{1};
constexpr std::chrono::seconds failure_interval{30};

}  // namespace

OtherStreams::Steady OtherStreams::look(const std::vector<std::string>& streams, Pull& pull,
                                        Steady now) {
  if (now < next_look_) return settled_at_;
  next_look_ = now + failure_interval;
  if (moved_at_ == Steady::min()) moved_at_ = now;
  Steady settled_at = now;
  std::set<std::string> gone;
  for (const std::string& stream : streams) {
    const std::optional<Progress> progress = pull.progress_in(stream);
    if (!progress) {
      // Nothing can come from it.
      gone.insert(stream);
      continue;
    }
    look_at(stream, *progress, now);
    settled_at = std::min(settled_at, marks_.at(stream).settled_at);
  }
  gone_ = std::move(gone);
  next_look_ = now + other_streams_interval;
  return settled_at_ = settled_at;
}

void OtherStreams::look_at(const std::string& stream, const Progress& progress, Steady now) {
  Mark& mark = marks_[stream];
  if (progress.stream_made_at != mark.stream_made_at || progress.end < mark.end) {
    // New, or another of this name: what was known says nothing of it.
    mark = {.stream_made_at = progress.stream_made_at, .made_at = now, .end = progress.end};
  } else if (progress.settled_through != mark.settled) {
    moved_at_ = now;
  }
  mark.settled = progress.settled_through;
  if (mark.settled < mark.end) return;
  mark.settled_at = mark.settled >= progress.end ? now : mark.made_at;
  mark.made_at = now;
  mark.end = progress.end;
}

}  // namespace stela::nats
