"""The installed package: run by `.ci/wheel` in a virtual environment that holds nothing but the wheel."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import ncclog

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "fixtures"
TCP = FIXTURES / "tcp-container-without-infiniband"


class Analyze(unittest.TestCase):
    def test_a_folder(self):
        report = ncclog.analyze(TCP)
        self.assertEqual(report["schema"], "ncclog.analysis/1")
        self.assertEqual(report["findings"][0]["id"], "tcp-fallback")

    def test_an_error_in_the_log_is_no_exception(self):
        report = ncclog.analyze([FIXTURES / "peer-crash-sigkill" / "train.log"])
        self.assertEqual(report["verdict"], "failed")

    def test_several_paths_and_options(self):
        folder = FIXTURES / "memlock-limit-one-node"
        report = ncclog.analyze(
            sorted(folder.glob("*.log")), expect=["net=IB", "nranks=4000"], why_not="tcp-fallback", no_config=True, threads=1, refine=False, config=None
        )
        self.assertEqual(len(report["inputs"]), 4)
        self.assertEqual(report["why_not"][0]["cause"], "tcp-fallback")
        self.assertIn("expectation-failed", [finding["id"] for finding in report["findings"]])

    def test_a_log_in_memory(self):
        line = "node1:7:9 [0] NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory errno 12\n"
        for data in (line, line.encode()):
            self.assertEqual(ncclog.analyze("-", input=data)["findings"][0]["id"], "memlock-limit")

    def test_what_cannot_be_read_is_an_exception_with_the_rest(self):
        with self.assertRaises(ncclog.NcclogError) as caught:
            ncclog.analyze([TCP, "no/such.log"])
        self.assertIn("no/such.log", str(caught.exception))
        self.assertEqual(caught.exception.analysis["findings"][0]["id"], "tcp-fallback")

    def test_wrong_options(self):
        with self.assertRaises(ncclog.NcclogError) as caught:
            ncclog.analyze(TCP, no_such_option=True)
        self.assertIn("--no-such-option", str(caught.exception))
        self.assertIsNone(caught.exception.analysis)
        with self.assertRaises(TypeError):
            ncclog.analyze(TCP, format="text")
        with self.assertRaises(ValueError):
            ncclog.analyze([])

    def test_a_path_like_an_option_is_a_path(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(ncclog.NcclogError) as caught:
                ncclog.analyze(["--help", folder])
            self.assertIn("--help: ", str(caught.exception))

    def test_time_runs_out(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            ncclog.analyze(TCP, timeout=0)


class Binary(unittest.TestCase):
    def test_it_is_the_one_of_this_environment(self):
        self.assertTrue(pathlib.Path(ncclog.find_binary()).is_relative_to(sys.prefix))

    def test_module_and_binary_are_one(self):
        for arguments in (["--version"], ["analyze", "--format", "json", str(TCP)], ["analyze", "no/such.log"]):
            said = [subprocess.run([*call, *arguments], capture_output=True) for call in ([ncclog.find_binary()], [sys.executable, "-m", "ncclog"])]
            self.assertEqual(said[0].returncode, said[1].returncode)
            self.assertEqual(said[0].stdout, said[1].stdout)


if __name__ == "__main__":
    unittest.main()
