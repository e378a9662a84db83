// Which JetStream stream and subject a partition and an event have.
#pragma once

#include <stela/nats/publisher.hpp>

#include <string>
#include <string_view>

namespace stela::nats {

/// Streams of one account may not share subjects, so each partition of several has a first token of
/// its own, which an only partition doesn't.
class Layout {
 public:
  explicit Layout(const PublisherOptions& options) : options_{options} {}

  std::string stream(PartitionId partition) const { return options_.stream + suffix(partition); }

  std::string subject(PartitionId partition, std::string_view event) const {
    std::string subject = options_.prefix;
    if (options_.fence == Fence::subject) return subject + '.' + partition.label();
    subject += suffix(partition);
    subject += '.';
    subject += event;
    return subject;
  }

  /// The subjects that the stream must take.
  std::string subjects(PartitionId partition) const {
    return options_.prefix + suffix(partition) + ".>";
  }

 private:
  std::string suffix(PartitionId partition) const {
    const bool own_stream = options_.fence == Fence::stream && partition.number > 0;
    return own_stream ? '_' + partition.label() : std::string{};
  }

  const PublisherOptions& options_;
};

}  // namespace stela::nats
