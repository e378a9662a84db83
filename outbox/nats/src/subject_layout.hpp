// Which JetStream stream and subject a partition and an event have.
#pragma once

#include <stela/nats/publisher.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace stela::nats {

/// Whether a stream of a relay's can have it.
bool is_stream_name(std::string_view name) noexcept;
/// UsageError if not.
void check_stream_name(std::string_view name);
/// UsageError if no consumer can have the name.
void check_consumer_name(std::string_view name);

/// Streams of one account may not share subjects, so each partition of several has a first token of
/// its own, which an only partition doesn't.
/// Threads: any number at once.
class SubjectLayout {
 public:
  /// UsageError if a name or the subject's template can't be used.
  explicit SubjectLayout(const PublisherOptions& options);

  std::string stream(PartitionId partition) const { return stream_ + suffix(partition); }

  /// CorruptEvent if the template asks for a header and the event's can't be read.
  std::string subject(PartitionId partition, const StoredEvent& event) const;
  /// Of all messages of a partition, in mode `subject`.
  std::string subject_of(PartitionId partition) const { return prefix_ + '.' + partition.label(); }

  /// The subjects that the stream must take.
  std::string subjects(PartitionId partition) const { return prefix_ + suffix(partition) + ".>"; }

 private:
  struct Part {
    enum class Kind : std::uint8_t { text, event, category, stream, partition, header } kind;
    std::string text;
  };

  std::string suffix(PartitionId partition) const;
  void parse(std::string_view subject);
  void add_part(std::string_view name, std::string_view subject);

  Fence fence_;
  std::string prefix_;
  std::string stream_;
  std::vector<Part> parts_;
};

/// What the subjects of the JetStream API begin with, the dot behind it included. UsageError if
/// both options are set, or one can't stand in a subject.
std::string api_prefix(const JetStreamApi& api);

/// Whether a subject, or a filter of subjects, is one of those that servers use themselves: "$JS.>"
/// or "_INBOX.7". A stream of them would take the requests and answers of a whole account.
bool is_of_servers(std::string_view subject) noexcept;

/// `text` as one token of a subject: what NATS gives a meaning to, and what can't be printed, is
/// written as %XX; "_" if it is empty.
std::string as_token(std::string_view text);

}  // namespace stela::nats
