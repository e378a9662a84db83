// What a database holds after a fault, read with the platform's own VFS and checked for wholeness.
#pragma once

#include <stela/eventstore.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

/// What `PRAGMA integrity_check` says of the file: "ok", or what is broken. Takes in the log, and
/// moves none of it.
std::string integrity_of(const std::string& path);
/// The same with `quick_check`, which leaves out the indexes.
std::string quick_integrity_of(const std::string& path);
/// One number out of the database: `SELECT count(*) FROM …`.
std::int64_t number_in(const std::string& path, const std::string& sql);

/// An event as the tests compare it.
struct Entry {
  std::int64_t sequence = 0;
  std::string stream;
  std::int64_t version = 0;
  std::string payload;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// Every event of the store, in order. Reading one compares its checksum.
std::vector<Entry> entries_of(Store& store);

/// What is wrong with the events, in words: a gap in the sequence or in the versions of a stream.
/// Empty if nothing is.
std::string flaw_in(const std::vector<Entry>& entries);

/// All of the above. What is wrong with the database, or empty.
std::string flaw_of(const std::string& path);

/// The bytes of a file, as one number.
std::uint64_t hash_of_file(const std::string& path);

/// A stream with one append that carries `events` payloads.
struct PlainAppend {
  StreamId stream;
  ExpectedVersion expected = ExpectedVersion::any();
  std::vector<std::string> payloads = {};
};

/// Appends to all of the streams in one transaction.
AppendResult append(EventLog& log, const std::vector<PlainAppend>& appends,
                    std::string_view append_id = {});
/// Appends one event to a stream.
AppendResult append(EventLog& log, std::string_view stream, std::string payload);

}  // namespace stela::test
