"""Jobs on real executors give what a local run gives, and the cluster of the script leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from semistream.store.paged.format.layout import INDEX_MAGIC, PAGES_MAGIC, belongs_to_a_table
from servers.left_out import left_out

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import s3_server
import separate_nodes

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "standalone_cluster.py"
JOB = Path(__file__).with_name("cluster_job.py")
PRODUCTS, SALES, FILES = 20_000, 2_000, 4
TIMEOUT_SECONDS = 600


def test_a_job_on_a_standalone_cluster_gives_the_rows_of_a_local_run(tmp_path: Path, local_rows: pa.Table) -> None:
    folder = with_data(tmp_path / "job")
    submit = f'spark-submit --master "$SPARK_MASTER_URL" {" ".join(settings(tmp_path))} {JOB} {folder}'
    done = on_cluster(tmp_path / "cluster", "sh", "-c", submit)
    assert done.returncode == 0, output_of(done)
    report = json.loads((folder / "report.json").read_text())
    assert report["master"].startswith("spark://127.0.0.1:")
    assert report["executors"] == ["0", "1"]
    assert_counted(report["batches"])
    assert warehouse(folder).equals(local_rows)


def test_a_job_on_a_local_cluster_gives_the_rows_of_a_local_run(tmp_path: Path, local_rows: pa.Table) -> None:
    folder = with_data(tmp_path / "job")
    done = submitted("local-cluster[2,1,1024]", folder, tmp_path)
    assert done.returncode == 0, output_of(done)
    report = json.loads((folder / "report.json").read_text())
    assert report["executors"] == ["0", "1"]
    assert_counted(report["batches"])
    assert warehouse(folder).equals(local_rows)


def test_the_rows_of_a_local_run_are_those_of_a_join_in_arrow(tmp_path: Path, local_rows: pa.Table) -> None:
    folder = with_data(tmp_path)
    sales = pq.read_table(folder / "incoming")
    joined = sales.join(pq.read_table(folder / "products.parquet"), "product_id", join_type="left outer")
    assert in_order(joined).equals(local_rows)


def test_a_cluster_ends_with_the_exit_code_of_its_command_and_leaves_no_process(tmp_path: Path) -> None:
    done = on_cluster(tmp_path / "cluster", "sh", "-c", 'echo "at $SPARK_MASTER_URL"; exit 7')
    assert done.returncode == 7, output_of(done)
    assert done.stdout.startswith("at spark://127.0.0.1:")
    assert processes_in(tmp_path / "cluster") == []


def test_a_cluster_that_is_terminated_ends_its_command_and_leaves_no_process(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    # The second command keeps the shell from being replaced by the first one.
    waiting = ["sh", "-c", f"echo ready; sleep {TIMEOUT_SECONDS}; echo {folder}"]
    process = started(folder, *waiting)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert len(processes_in(folder)) >= 4
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert processes_in(folder) == []


def test_nodes_that_share_no_folder_enrich_a_stream_from_a_table_in_s3(tmp_path: Path) -> None:
    reason = separate_nodes.why_not() or (None if s3_server.installed() else "moto is not installed: `make servers`.")
    if reason is not None:
        left_out(reason)
    folder = tmp_path / "cluster"
    process = started(folder, sys.executable, str(ROOT / "examples" / "cluster" / "enrich_from_s3.py"), apart=True)
    output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, f"{output}\n{errors[-6000:]}"
    assert output.count("equal to a batch join") == 2
    assert "worker-1 sees no file of the driver and has no file of the table; its tier has" in output
    assert "worker-2 sees no file of the driver and has no file of the table; its tier has" in output
    files = [path for path in (folder / "nodes").rglob("*") if path.is_file()]
    of_table = [path for path in files if path.read_bytes()[:8] in (PAGES_MAGIC, INDEX_MAGIC)]
    assert [path for path in of_table if "semistream-tier-" not in str(path)] == []
    assert [path for path in files if belongs_to_a_table(path.name)] == []
    written = {path.relative_to(folder / "nodes").parts[0] for path in files}
    assert {"driver", "worker-1", "worker-2"} <= written
    assert processes_in(folder) == []


@pytest.fixture(scope="module")
def local_rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """Return the rows that the job writes without executors."""
    scratch = tmp_path_factory.mktemp("local")
    folder = with_data(scratch / "job")
    done = submitted("local[2]", folder, scratch)
    assert done.returncode == 0, output_of(done)
    return warehouse(folder)


def with_data(folder: Path) -> Path:
    """Return the folder with products and sales in it, the same ones every time."""
    random = np.random.default_rng(7)
    (folder / "incoming").mkdir(parents=True)
    ids = np.arange(PRODUCTS, dtype=np.int64) * 2
    products = pa.table({"product_id": ids, "name": [f"product {key}" for key in ids.tolist()], "price": ids % 997})
    pq.write_table(products, folder / "products.parquet")
    for number in range(FILES):
        sales = {
            "sale_id": np.arange(number * SALES, (number + 1) * SALES),
            "product_id": random.zipf(1.3, SALES) % (2 * PRODUCTS),
        }
        pq.write_table(pa.table(sales), folder / "incoming" / f"{number}.parquet")
    return folder


def settings(scratch: Path) -> list[str]:
    """Return the settings of every run: small, quiet and on loopback."""
    chosen = {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        # Both executors are to take part, however slowly the second one starts.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    return [part for name, value in chosen.items() for part in ("--conf", f"{name}={value}")]


def submitted(master: str, folder: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Run the job by spark-submit."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    home = Path(spec.origin).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(scratch / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(home / "bin" / "spark-submit"), "--master", master, *settings(scratch), str(JOB), str(folder)]
    return subprocess.run(
        command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )


def started(folder: Path, *command: str, apart: bool = False) -> subprocess.Popen[str]:
    """Start a command on a new cluster whose files lie in the folder."""
    nodes = ["--apart"] if apart else []
    whole = [sys.executable, "-W", "error", str(SCRIPT), *nodes, "--folder", str(folder), "--", *command]
    return subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def on_cluster(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a new cluster to its end."""
    process = started(folder, *command)
    try:
        output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()  # not killed, so that it can stop the cluster
        output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def processes_in(folder: Path) -> list[str]:
    """Return the command lines that name the folder, but for those of the tests."""
    lines_of_processes = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if str(folder) in line and "pytest" not in process.name() and process.pid != os.getpid():
            lines_of_processes.append(line)
    return lines_of_processes


def warehouse(folder: Path) -> pa.Table:
    """Return what the job wrote, in the order of sales."""
    return in_order(pq.read_table(folder / "warehouse", partitioning=None))


def in_order(rows: pa.Table) -> pa.Table:
    """Return the rows by sale, in one chunk and without metadata, so that tables can be compared."""
    chosen = rows.select(["sale_id", "product_id", "name", "price"]).sort_by("sale_id")
    return pa.table({name: chosen[name].combine_chunks() for name in chosen.column_names})


def assert_counted(batches: list[dict[str, Any]]) -> None:
    """Check that the statistics of all tasks reached the driver."""
    assert [batch["batch_id"] for batch in batches] == list(range(FILES // 2))
    assert sum(batch["tuples_in"] for batch in batches) == SALES * FILES
    assert sum(batch["rows_out"] for batch in batches) == SALES * FILES
    assert {batch["version"] for batch in batches} == {1}


def output_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the end of what a process has said."""
    return f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
