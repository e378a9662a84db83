// Where databases lie: on the disk, or in memory.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stela::bench {

enum class Place : unsigned char { disk, tmpfs };

std::string_view to_string(Place place) noexcept;

/// The two folders that databases are made in.
struct Places {
  std::filesystem::path disk;
  std::filesystem::path tmpfs = "/dev/shm";

  const std::filesystem::path& at(Place place) const noexcept {
    return place == Place::disk ? disk : tmpfs;
  }
};

/// An empty folder, removed with everything in it when it goes.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& parent);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace stela::bench
