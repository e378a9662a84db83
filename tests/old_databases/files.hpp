// The old databases, copied for a test that opens them.
#pragma once

#include "old_databases/scene.hpp"

#include <stela/outbox.hpp>
#include <stela/projections.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stela::test::old {

/// "0.1.0", …
std::vector<std::string> versions();
/// "0.1.0/leased", …: every database of every version.
std::vector<std::string> databases();
/// The folder with a version's databases, which no test changes.
std::filesystem::path folder_of(const std::string& version);
/// The export that was made of a database: a file of JSON Lines.
std::filesystem::path export_of(const std::string& database);

/// A database as it was left behind, and its broker if it had one, in a folder of its own.
class Copy {
 public:
  explicit Copy(const std::string& database);

  std::string path() const { return dir_.file(name_ + ".db"); }
  std::string broker() const { return dir_.file(name_ + ".broker.db"); }

 private:
  const std::string name_;
  const TempDir dir_ = TempDir::in_memory();
};

/// Opened by an application that has all that the database requires, at the moment when it was
/// left.
struct Opened {
  explicit Opened(const std::string& path);

  testing::ManualClock clock;
  Store store;
  std::optional<Outbox> outbox;
  std::optional<Projections> projections;
};

}  // namespace stela::test::old
