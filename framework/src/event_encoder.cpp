#include <stela/framework/detail/event_encoder.hpp>

namespace stela::detail {

void EventEncoder::reserve(std::size_t events) {
  events_.reserve(events);
  bytes_.reserve(events * 256);
}

std::span<const NewEvent> EventEncoder::events() {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Part& part = parts_[i];
    events_[i].payload = std::string_view{bytes_}.substr(part.begin, part.size);
    events_[i].tags = std::span{tags_}.subspan(part.first_tag, part.tags);
    events_[i].keys = std::span{keys_}.subspan(part.first_key, part.keys);
  }
  return events_;
}

void EventEncoder::add_tag(std::string_view type, Tag tag) {
  if (is_guarded_ && tag.category() == stream_.category() && tag != stream_) {
    throw_foreign_tag(type, stream_, tag);
  }
  tags_.push_back(std::move(tag));
}

void EventEncoder::note_part(Part part, const codec::Sealing& sealing) {
  part.first_key = keys_.size();
  part.keys = sealing.used.size();
  parts_.resize(events_.size());
  parts_.push_back(part);
  keys_.insert(keys_.end(), sealing.used.begin(), sealing.used.end());
}

}  // namespace stela::detail
