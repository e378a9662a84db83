#include "old_databases/files.hpp"

#include <stela/eventstore/operations.hpp>

#include <algorithm>

namespace stela::test::old {
namespace {

namespace fs = std::filesystem;

const fs::path unpacked{STELA_OLD_DATABASES};
const fs::path source{STELA_OLD_EXPORTS};

}  // namespace

std::vector<std::string> versions() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator{unpacked}) {
    found.push_back(entry.path().filename().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> databases() {
  std::vector<std::string> found;
  for (const std::string& version : versions()) {
    for (const auto& entry : fs::directory_iterator{folder_of(version)}) {
      const fs::path& file = entry.path();
      if (file.extension() != ".db" || file.stem().extension() == ".broker") continue;
      found.push_back(version + '/' + file.stem().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

fs::path folder_of(const std::string& version) {
  return unpacked / version;
}

fs::path export_of(const std::string& database) {
  return source / (database + ".jsonl");
}

Copy::Copy(const std::string& database) : name_{fs::path{database}.filename().string()} {
  const fs::path folder = folder_of(fs::path{database}.parent_path().string());
  for (const char* const suffix : {".db", ".db-wal", ".broker.db", ".broker.db-wal"}) {
    const fs::path file = folder / (name_ + suffix);
    if (fs::exists(file)) fs::copy_file(file, dir_.file(name_ + suffix));
  }
}

Opened::Opened(const std::string& path)
    : store{(clock.advance(frozen_after), sqlite::open(path, {.create = false, .clock = &clock}))} {
  for (const auto& required : StoreOperations{store}.required_participants()) {
    if (required.name == "outbox") {
      outbox.emplace(store);
    } else {
      projections.emplace(store);
      projections->add_inline(Listing<Inline>{});
    }
  }
}

}  // namespace stela::test::old
