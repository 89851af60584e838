// SPDX-License-Identifier: Apache-2.0
#ifndef WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_RANK_H_
#define WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_RANK_H_

#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "calibrate/execute/gpu/partitioned_execution.h"

namespace weir::calibrate {

// Errors are those of rank_device.h.
class PartitionedRank : public CudaRank {
 public:
  // Resources owned by the rank that its tools point to.
  struct Own {
    Stream stream;
    std::unique_ptr<GemmLibrary> gemms;
    DeviceMemory workspace;
    std::unique_ptr<StageExecutors> executors;
  };
  PartitionedRank(PartitionedExecution* replay, Own own, RankTools tools);
  ~PartitionedRank() override;

  absl::Status Open(int64_t pool_bytes, int64_t primed_bytes,
                    const std::vector<int>& sends_to);

  absl::StatusOr<void*> AllocateMemory(int64_t num_elements,
                                       ElementFormat format,
                                       absl::string_view what) override;
  absl::Status FreeMemory(void* memory) override;
  absl::StatusOr<RankEventPtr> Now() override;
  absl::Status WaitForEvent(const RankEventPtr& event) override;
  absl::StatusOr<CopyEvents> Send(RankDevice* to,
                                  absl::Span<const CopyPiece> pieces,
                                  int64_t num_elements, ElementFormat format,
                                  const LinkSpec& link, int bits,
                                  const RankEventPtr& ready) override;
  absl::StatusOr<CopyEvents> ToHost(int64_t slot, int64_t num_elements,
                                    ElementFormat format,
                                    const RankEventPtr& ready,
                                    const void* from) override;
  absl::StatusOr<CopyEvents> FromHost(int64_t slot, int64_t num_elements,
                                      ElementFormat format,
                                      absl::Span<const RankEventPtr> ready,
                                      void* into) override;
  absl::Status Finish() override;
  absl::StatusOr<double> SecondsOf(const RankEventPtr& event) override;
  bool HasPassed(const RankEventPtr& event) override;

  // Returns the event at which all work queued so far on a stream has ended.
  absl::StatusOr<RankEventPtr> Record(cudaStream_t stream) const;

 protected:
  absl::Status MakeCurrent() override { return UseDevice(); }
  absl::Status Begin(int /*stage*/, ProgramPass /*pass*/,
                     int /*num_launches*/) override {
    return absl::OkStatus();
  }
  absl::Status End() override { return absl::OkStatus(); }
  absl::StatusOr<void*> Locate(const void* memory) override {
    return const_cast<void*>(memory);
  }

 private:
  // Ordered messages to one rank.
  struct Channel {
    Stream stream;
    DeviceMemory scratch;  // for rounded messages
  };
  // Data saved on the host, with the events of the copy to the host and of the
  // last copy back.
  struct Slot {
    PinnedBlocks::Block block;
    RankEventPtr kept, read;
  };
  absl::StatusOr<Channel*> ChannelTo(int rank);
  absl::Status WaitOn(cudaStream_t stream, const RankEventPtr& event) const;
  absl::Status Copy(const Channel& channel, absl::Span<const CopyPiece> pieces,
                    int64_t num_elements, ElementFormat format,
                    const LinkSpec& link, int bits) const;
  absl::StatusOr<cudaStream_t> HostStream(Stream* stream) const;
  absl::StatusOr<CopyEvents> HostCopy(cudaStream_t stream, void* to,
                                      const void* from,
                                      int64_t num_bytes) const;

  PartitionedExecution& execution_;
  Own own_;
  std::unordered_set<void*> taken_;
  std::map<int, Channel> channels_;
  Stream to_host_, from_host_;
  std::map<int64_t, Slot> slots_;
};

}  // namespace weir::calibrate

#endif  // WEIR_CALIBRATE_EXECUTE_GPU_PARTITIONED_RANK_H_
