// Maps partitions and events to JetStream streams and subjects.
#pragma once

#include <stela/nats/publisher.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// Whether a relay's stream can have this name.
bool is_stream_name(std::string_view name) noexcept;
/// UsageError unless `is_stream_name`.
void check_stream_name(std::string_view name);
/// UsageError if no consumer can have the name.
void check_consumer_name(std::string_view name);

/// Streams of one account may not share subjects, so each of several partitions has its own first
/// token. A single partition doesn't need one.
/// Threads: any number at once.
class SubjectLayout {
 public:
  /// UsageError if a name or the subject's template can't be used.
  explicit SubjectLayout(const PublisherOptions& options);

  std::string stream(PartitionId partition) const { return stream_ + suffix(partition); }

  /// CorruptEvent if the template needs a header and the event's headers can't be read.
  std::string subject(PartitionId partition, const StoredEvent& event) const;
  /// The subject of all messages of a partition, in mode `subject`.
  std::string subject_of(PartitionId partition) const { return prefix_ + '.' + partition.label(); }

  /// The subjects that the stream must take.
  std::string subjects(PartitionId partition) const {
    return (shares_stream() ? shared_prefix_ : prefix_ + suffix(partition)) + ".>";
  }

 private:
  struct Part {
    enum class Kind : std::uint8_t { text, event, category, stream, partition, header } kind;
    std::string text;
  };

  void add_tenant(const std::string& tenant);
  bool shares_stream() const noexcept {
    return fence_ == Fence::subject && !shared_prefix_.empty();
  }
  std::string suffix(PartitionId partition) const;
  void parse(std::string_view subject);
  void add_part(std::string_view name, std::string_view subject);

  Fence fence_;
  std::string prefix_;
  /// The part of the prefix that all tenants share; empty if there are none.
  std::string shared_prefix_;
  std::string stream_;
  std::vector<Part> parts_;
};

/// The prefix of the JetStream API's subjects, with its final dot. UsageError if both options are
/// set, or one isn't valid in a subject.
std::string api_prefix(const JetStreamApi& api);

/// Whether a subject or filter is reserved for servers, like "$JS.>" or "_INBOX.7". A stream with
/// such a subject would take the requests and answers of an entire account.
bool is_of_servers(std::string_view subject) noexcept;

/// `text` as one token of a subject: unprintable characters, and those with a meaning in NATS, are
/// written as %XX; "_" if it is empty.
std::string as_token(std::string_view text);

}  // namespace stela::nats
